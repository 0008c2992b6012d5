/* The first process of a container, for images that hold nothing we could use. Linked statically.

   Speaks the messages of wire.py on the Unix socket that it finds beside it: opens sockets in the container's network
   and hands them out, starts programs with the descriptors that come with the order, tells how they end. When the line
   ends it ends, and with it the container.

   Each program has a keeper above it, which adopts what daemonises and ends all of it with the program. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { START = 1, SIGNAL = 2, CONNECT = 3, FREEZE = 5, LISTEN = 7 };
enum { DONE = 16, REFUSED = 17, ENDED = 18 };
enum { PROGRAMS = 1024, DESCRIPTORS = 4, ROUNDS = 50 };

struct __attribute__((packed)) head {
    uint8_t what;
    int64_t ticket, value, took_ns;
};

/* What a keeper tells: first whether the program was executed, then how it ended. */
struct told {
    int failed, pid, status;
};

struct program {
    int64_t ticket, began_ns;
    pid_t keeper, pid;
    int told;
};

static int line;
static struct program programs[PROGRAMS];
static int running;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void tell(int what, int64_t ticket, int64_t value, int64_t took_ns, int fd) {
    struct head head = {what, ticket, value, took_ns};
    char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec data = {&head, sizeof head};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = room;
        message.msg_controllen = sizeof room;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    if (sendmsg(line, &message, MSG_NOSIGNAL) < 0 && errno != EINTR)
        exit(1);
}

/* -- programs ----------------------------------------------------------------------------------------------------- */

/* The words of an order: how many arguments, how many variables, the folder, and then all of them. */
static char **words_of(int fd, char **argv[], char **env[], char **cwd) {
    struct stat about;
    if (fstat(fd, &about) < 0 || about.st_size < 6)
        return NULL;
    char *text = malloc(about.st_size + 1);
    if (!text || pread(fd, text, about.st_size, 0) != about.st_size)
        return NULL;
    text[about.st_size] = 0;
    char *at = text, *end = text + about.st_size;
    long argc = atol(at);
    at += strlen(at) + 1;
    long envc = atol(at);
    at += strlen(at) + 1;
    char **all = calloc(argc + envc + 2, sizeof *all);
    if (!all || argc < 1 || envc < 0)
        return NULL;
    *cwd = at;
    at += strlen(at) + 1;
    for (long n = 0; n < argc + envc && at < end; n++, at += strlen(at) + 1)
        all[n < argc ? n : n + 1] = at;
    *argv = all;
    *env = all + argc + 1;
    return all;
}

static void execute(const int *fds, int failed) {
    char **argv, **env, *cwd;
    sigset_t none;
    int stdio[3];
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (words_of(fds[0], &argv, &env, &cwd) && chdir(cwd) == 0) {
        int out = fcntl(failed, F_DUPFD_CLOEXEC, 100);
        for (int n = 0; n < 3; n++)
            stdio[n] = fcntl(fds[n + 1], F_DUPFD_CLOEXEC, 101);
        for (int n = 0; n < 3; n++)
            dup2(stdio[n], n);
        syscall(SYS_close_range, 3, 99, 0);
        failed = out;
        environ = env;
        execvp(argv[0], argv);
    }
    int why = errno ? errno : ENOMEM;
    if (write(failed, &why, sizeof why) < 0)
        _exit(126);
    _exit(127);
}

static int children(pid_t *found, int most) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC), count = 0;
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[size > 0 ? size : 0] = 0;
    for (char *word = strtok(text, " "); word && count < most; word = strtok(NULL, " "))
        found[count++] = atoi(word);
    return count;
}

static void end_orphans(void) {
    pid_t found[512];
    for (int round = 0, count; round < ROUNDS && (count = children(found, 512)); round++)
        for (int n = 0; n < count; n++) {
            kill(found[n], SIGKILL);
            waitpid(found[n], NULL, 0);
        }
}

static void keep(const int *fds, int told) {
    int failed[2], status = 0;
    struct told news = {0};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (pipe2(failed, O_CLOEXEC) < 0 || (news.pid = fork()) < 0)
        _exit(1);
    if (news.pid == 0)
        execute(fds, failed[1]);
    close(failed[1]);
    for (int n = 0; n < DESCRIPTORS; n++)
        close(fds[n]);
    if (read(failed[0], &news.failed, sizeof news.failed) != sizeof news.failed)
        news.failed = 0;
    if (write(told, &news, sizeof news) < 0)
        _exit(1);
    for (pid_t gone; (gone = waitpid(-1, &status, 0)) != news.pid;)
        if (gone < 0 && errno != EINTR)
            break;
    end_orphans();
    news.status = status;
    if (write(told, &news, sizeof news) < 0)
        _exit(1);
    _exit(0);
}

static void start(int64_t ticket, const int *fds) {
    int told[2];
    if (running == PROGRAMS || pipe2(told, O_CLOEXEC) < 0) {
        tell(REFUSED, ticket, EAGAIN, 0, -1);
        return;
    }
    struct program *program = &programs[running];
    *program = (struct program){ticket, now_ns(), fork(), 0, told[0]};
    if (program->keeper == 0) {
        close(line);
        keep(fds, told[1]);
    }
    close(told[1]);
    if (program->keeper < 0) {
        close(told[0]);
        tell(REFUSED, ticket, EAGAIN, 0, -1);
        return;
    }
    running++;
}

/* What a keeper has told; whether the program is over. */
static int heard(struct program *program) {
    struct told news;
    int whole = read(program->told, &news, sizeof news) == sizeof news;
    if (whole && !program->pid) {
        program->pid = news.pid;
        tell(news.failed ? REFUSED : DONE, program->ticket, news.failed, 0, -1);
        if (news.failed)
            program->ticket = -1;
        return 0;
    }
    if (!whole && !program->pid) /* killed before it could say anything */
        tell(REFUSED, program->ticket, EAGAIN, 0, -1);
    else if (program->ticket >= 0)
        tell(ENDED, program->ticket, whole ? news.status : SIGKILL, now_ns() - program->began_ns, -1);
    close(program->told);
    if (program->keeper) { /* it has nothing more to do; the agent may have stopped it */
        kill(program->keeper, SIGKILL);
        waitpid(program->keeper, NULL, 0);
    }
    return 1;
}

static void signal_program(int64_t ticket, int number) {
    for (int n = 0; n < running; n++) {
        struct program *program = &programs[n];
        if (program->ticket != ticket || !program->pid)
            continue;
        kill(number == SIGKILL ? program->pid : -program->pid, number);
        if (number == SIGKILL && program->keeper)
            kill(program->keeper, SIGCONT); /* the agent may have stopped it */
    }
}

static int keeper_at(pid_t pid) {
    int at = running - 1;
    while (at >= 0 && programs[at].keeper != pid)
        at--;
    return at;
}

static void reaped(pid_t pid) {
    int at = keeper_at(pid);
    if (at >= 0)
        programs[at].keeper = 0;
}

static int is_alive(const char *pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[size > 0 ? size : 0] = 0;
    char *name_end = strrchr(text, ')'); /* the name before it may hold anything */
    return name_end && name_end[1] && name_end[2] != 'Z' && name_end[2] != 'X';
}

static int alive(void) {
    DIR *all = opendir("/proc");
    int count = 0;
    for (struct dirent *one; all && (one = readdir(all));) {
        pid_t pid = atoi(one->d_name);
        count += pid > 1 && keeper_at(pid) < 0 && is_alive(one->d_name);
    }
    if (all)
        closedir(all);
    return count;
}

/* Ends everything but us; tells how many processes there were, keepers not counted. */
static void freeze(int64_t ticket) {
    int ended = alive();
    kill(-1, SIGKILL);
    for (pid_t gone; (gone = waitpid(-1, NULL, 0)) > 0 || errno == EINTR;)
        reaped(gone);
    while (running)
        if (heard(&programs[running - 1]))
            running--;
    tell(DONE, ticket, ended, 0, -1);
}

/* -- sockets ------------------------------------------------------------------------------------------------------ */

static void open_socket(int64_t ticket, int64_t value, int listening) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(value & 0xffff)};
    at.sin_addr.s_addr = htonl(listening ? (uint32_t)(value >> 16) : INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    int failed = fd < 0;
    if (!failed && listening)
        failed = bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 128) < 0;
    else if (!failed) /* whoever listens may take no connection: not we wait for that */
        failed = connect(fd, (struct sockaddr *)&at, sizeof at) < 0 && errno != EINPROGRESS;
    tell(failed ? REFUSED : DONE, ticket, failed ? errno : 0, 0, failed ? -1 : fd);
    if (fd >= 0)
        close(fd);
}

/* -- orders ------------------------------------------------------------------------------------------------------- */

static void obey(void) {
    struct head head = {0};
    char room[CMSG_SPACE(sizeof(int) * DESCRIPTORS)];
    struct iovec data = {&head, sizeof head};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    int fds[DESCRIPTORS], count = 0;
    ssize_t size = recvmsg(line, &message, MSG_CMSG_CLOEXEC);
    if (size < 0 && errno == EINTR)
        return;
    if (size < (ssize_t)sizeof head)
        exit(0); /* nobody is there any more: the kernel ends everything below us */
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (rights && rights->cmsg_type == SCM_RIGHTS) {
        count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(rights), count * sizeof(int));
    }
    if (head.what == START && count == DESCRIPTORS)
        start(head.ticket, fds);
    else if (head.what == SIGNAL)
        signal_program(head.ticket, (int)head.value);
    else if (head.what == CONNECT || head.what == LISTEN)
        open_socket(head.ticket, head.value, head.what == LISTEN);
    else if (head.what == FREEZE)
        freeze(head.ticket);
    for (int n = 0; n < count; n++)
        close(fds[n]);
}

static void serve(void) {
    struct pollfd waiting[PROGRAMS + 1];
    for (;;) {
        waiting[0] = (struct pollfd){line, POLLIN, 0};
        for (int n = 0; n < running; n++)
            waiting[n + 1] = (struct pollfd){programs[n].told, POLLIN, 0};
        int known = running;
        if (poll(waiting, known + 1, 1000) < 0 && errno != EINTR)
            exit(1);
        for (int n = known - 1; n >= 0; n--)
            if (waiting[n + 1].revents && heard(&programs[n]))
                programs[n] = programs[--running];
        if (waiting[0].revents)
            obey();
        for (pid_t gone; (gone = waitpid(-1, NULL, WNOHANG)) > 0;) /* orphans whose keeper was killed, too */
            reaped(gone);
    }
}

int main(int argc, char **argv) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (argc != 2 || strlen(argv[1]) >= sizeof at.sun_path)
        return 2;
    strcpy(at.sun_path, argv[1]);
    prctl(PR_SET_DUMPABLE, 0); /* the agent has our user: it may not trace us */
    line = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (line < 0 || connect(line, (struct sockaddr *)&at, sizeof at) < 0) {
        perror("first_process");
        return 1;
    }
    tell(DONE, 0, 0, 0, -1);
    serve();
}
