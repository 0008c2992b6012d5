/* Shifts the realtime clock of a program that preloads it. Monotonic clocks and the times of files stay as they are.

   HOLDFAST_CLOCK names a file of three 64-bit numbers, mapped read-only: nanoseconds that the clock is ahead, the time at
   which it stands still, 0 while it goes, and how often it was changed. The file may change at any moment, one number at
   a time: each is one store. HOLDFAST_CLOCK_OFFSET_NS is used where there is no such file. The first time that a program
   reads the clock after a change, it writes the number of that change to the named pipe beside the file, if there is one.

   A deadline in shown time becomes one in real time that is just as far away, so a wait takes as long as it should,
   also while the clock is frozen. A wait that is under way does not notice a jump. Not reached: programs that are
   statically linked, that ask the kernel themselves (Go) or that clear their environment; what the C library asks
   itself for inside its own functions; timers of timer_create. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define BILLION 1000000000LL
#define SHOWN __attribute__((visibility("default")))

struct control {
    int64_t ahead_ns;
    int64_t stands_at_ns;
    int64_t changes;
};

static struct control fallback;
static volatile const struct control *control = &fallback;
static char readings[PATH_MAX];
static int cond_tells_clock;

static int (*python_is_there)(void);
static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_clock_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
static int (*real_cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_cond_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
static int (*real_mutex_timedlock)(pthread_mutex_t *, const struct timespec *);
static int (*real_mutex_clocklock)(pthread_mutex_t *, clockid_t, const struct timespec *);
static int (*real_rdlock)(pthread_rwlock_t *, const struct timespec *);
static int (*real_wrlock)(pthread_rwlock_t *, const struct timespec *);
static int (*real_sem_timedwait)(sem_t *, const struct timespec *);
static int (*real_sem_clockwait)(sem_t *, clockid_t, const struct timespec *);
static int (*real_timerfd_settime)(int, int, const struct itimerspec *, struct itimerspec *);

/* -- setting up --------------------------------------------------------------------------------------------------- */

/* glibc keeps a condition's clock in bit 1 of __wrefs. Tried, not trusted: where it is elsewhere, no deadline of a
   condition is changed. */
static int monotonic(const pthread_cond_t *cond) {
    return (cond->__data.__wrefs & 2) != 0;
}

static int tells_clock(void) {
    pthread_cond_t plain, other;
    pthread_condattr_t attributes;
    pthread_cond_init(&plain, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&other, &attributes);
    int told = !monotonic(&plain) && monotonic(&other);
    pthread_cond_destroy(&plain);
    pthread_cond_destroy(&other);
    pthread_condattr_destroy(&attributes);
    return told;
}

static void map_control(void) {
    const char *offset = getenv("HOLDFAST_CLOCK_OFFSET_NS");
    const char *path = getenv("HOLDFAST_CLOCK");
    struct stat about;
    if (offset)
        fallback.ahead_ns = strtoll(offset, NULL, 10);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    if (fstat(fd, &about) == 0 && about.st_size >= (off_t)sizeof(struct control)) {
        void *mapped = mmap(NULL, sizeof(struct control), PROT_READ, MAP_SHARED, fd, 0);
        if (mapped != MAP_FAILED)
            control = mapped;
    }
    if (strlen(path) + sizeof ".reads" <= sizeof readings)
        strcat(strcpy(readings, path), ".reads");
    close(fd);
}

static void *next(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

/* Other libraries may ask for the time before our constructor has run. */
static void set_up(void) {
    static int done;
    if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
        return;
    real_clock_nanosleep = next("clock_nanosleep");
    real_cond_timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2"); /* an older one is still there */
    if (!real_cond_timedwait)
        real_cond_timedwait = next("pthread_cond_timedwait");
    real_cond_clockwait = next("pthread_cond_clockwait");
    real_mutex_timedlock = next("pthread_mutex_timedlock");
    real_mutex_clocklock = next("pthread_mutex_clocklock");
    real_rdlock = next("pthread_rwlock_timedrdlock");
    real_wrlock = next("pthread_rwlock_timedwrlock");
    real_sem_timedwait = next("sem_timedwait");
    real_sem_clockwait = next("sem_clockwait");
    real_timerfd_settime = next("timerfd_settime");
    real_clock_gettime = next("clock_gettime");
    python_is_there = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    cond_tells_clock = tells_clock();
    map_control();
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void begin(void) {
    set_up();
}

/* -- from real to shown and back ---------------------------------------------------------------------------------- */

static int64_t nanoseconds(const struct timespec *at) {
    return (int64_t)at->tv_sec * BILLION + at->tv_nsec;
}

static void put(struct timespec *at, int64_t ns) {
    at->tv_sec = ns / BILLION;
    at->tv_nsec = ns % BILLION;
    if (at->tv_nsec < 0) { /* before 1970 */
        at->tv_nsec += BILLION;
        at->tv_sec -= 1;
    }
}

static int64_t ahead(int64_t real_ns) {
    int64_t stands = control->stands_at_ns;
    return stands ? stands - real_ns : control->ahead_ns;
}

static int shifted(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_REALTIME_ALARM ||
           clock == CLOCK_TAI;
}

/* The deadline in real time; as it is where it is no time at all, so that the caller gets the error that is due. */
static const struct timespec *deadline(clockid_t clock, const struct timespec *shown, struct timespec *room) {
    struct timespec now;
    int64_t far = INT64_MAX / BILLION / 2;
    if (!shown || !shifted(clock) || shown->tv_nsec < 0 || shown->tv_nsec >= BILLION || shown->tv_sec < 0 ||
        shown->tv_sec > far || real_clock_gettime(clock, &now) != 0)
        return shown;
    int64_t real = nanoseconds(shown) - ahead(nanoseconds(&now));
    put(room, real > 0 ? real : 0);
    return room;
}

/* -- what is read ------------------------------------------------------------------------------------------------- */

/* Python reads the clock when it starts, whatever it is to do: that is nobody's reading yet. */
static int starts(void) {
    return python_is_there && !python_is_there();
}

/* Once a change. Nobody may be there to be told, and the program must not notice us: one that could also read from the
   pipe gets no signal where nobody else does. */
static void tell_reading(int64_t changes) {
    static int64_t told;
    if (!readings[0] || starts() || __atomic_exchange_n(&told, changes, __ATOMIC_RELAXED) == changes)
        return;
    int before = errno;
    int pipe = open(readings, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (pipe >= 0) {
        if (write(pipe, &changes, sizeof changes) < 0)
            errno = before;
        close(pipe);
    }
    errno = before;
}

SHOWN int clock_gettime(clockid_t clock, struct timespec *at) {
    set_up();
    int64_t changes = __atomic_load_n(&control->changes, __ATOMIC_ACQUIRE); /* first: the time read is no older */
    int result = real_clock_gettime(clock, at);
    if (result == 0 && shifted(clock)) {
        put(at, nanoseconds(at) + ahead(nanoseconds(at)));
        tell_reading(changes);
    }
    return result;
}

SHOWN int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    if (zone)
        memset(zone, 0, sizeof(struct timezone));
    if (!at)
        return 0;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return result;
}

SHOWN time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}

SHOWN int timespec_get(struct timespec *at, int base) {
    if (base != TIME_UTC)
        return 0;
    return clock_gettime(CLOCK_REALTIME, at) == 0 ? base : 0;
}

/* -- what is waited for ------------------------------------------------------------------------------------------- */

SHOWN int clock_nanosleep(clockid_t clock, int flags, const struct timespec *at, struct timespec *left) {
    struct timespec room;
    set_up();
    return real_clock_nanosleep(clock, flags, flags & TIMER_ABSTIME ? deadline(clock, at, &room) : at, left);
}

SHOWN int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                 const struct timespec *restrict at) {
    struct timespec room;
    set_up();
    int mine = cond_tells_clock && !monotonic(cond);
    return real_cond_timedwait(cond, mutex, mine ? deadline(CLOCK_REALTIME, at, &room) : at);
}

SHOWN int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, clockid_t clock,
                                 const struct timespec *restrict at) {
    struct timespec room;
    set_up();
    return real_cond_clockwait(cond, mutex, clock, deadline(clock, at, &room));
}

SHOWN int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict at) {
    struct timespec room;
    set_up();
    return real_mutex_timedlock(mutex, deadline(CLOCK_REALTIME, at, &room));
}

SHOWN int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock,
                                  const struct timespec *restrict at) {
    struct timespec room;
    set_up();
    return real_mutex_clocklock(mutex, clock, deadline(clock, at, &room));
}

SHOWN int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict lock, const struct timespec *restrict at) {
    struct timespec room;
    set_up();
    return real_rdlock(lock, deadline(CLOCK_REALTIME, at, &room));
}

SHOWN int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict lock, const struct timespec *restrict at) {
    struct timespec room;
    set_up();
    return real_wrlock(lock, deadline(CLOCK_REALTIME, at, &room));
}

SHOWN int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict at) {
    struct timespec room;
    set_up();
    return real_sem_timedwait(semaphore, deadline(CLOCK_REALTIME, at, &room));
}

SHOWN int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict at) {
    struct timespec room;
    set_up();
    return real_sem_clockwait(semaphore, clock, deadline(clock, at, &room));
}

/* The kernel knows which clock a timer was made with; a program may have got it from another one. */
static clockid_t timer_clock(int fd) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    int info = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = info < 0 ? 0 : read(info, text, sizeof text - 1);
    if (info >= 0)
        close(info);
    text[size > 0 ? size : 0] = 0;
    const char *told = strstr(text, "clockid:");
    return told ? (clockid_t)strtol(told + 8, NULL, 10) : CLOCK_MONOTONIC;
}

SHOWN int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before) {
    struct itimerspec moved;
    set_up();
    if (!(flags & TFD_TIMER_ABSTIME) || !at || (at->it_value.tv_sec == 0 && at->it_value.tv_nsec == 0))
        return real_timerfd_settime(fd, flags, at, before);
    moved = *at;
    moved.it_value = *deadline(timer_clock(fd), &at->it_value, &moved.it_value);
    if (moved.it_value.tv_sec == 0 && moved.it_value.tv_nsec == 0)
        moved.it_value.tv_nsec = 1; /* nothing at all would stop the timer */
    return real_timerfd_settime(fd, flags, &moved, before);
}
