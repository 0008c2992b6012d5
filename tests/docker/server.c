/* A service for tests, alone in its image: answers on two ports with its own port and what it was given to say. */

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int listening(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = INADDR_ANY};
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 16) < 0)
        exit(4);
    return fd;
}

static void answer(int fd, int port) {
    int client = accept(fd, NULL, NULL);
    const char *says = getenv("SAYS");
    dprintf(client, "%d %s", port, says ? says : "nothing");
    close(client);
}

int main(void) {
    if (getenv("FAILS")) {
        fprintf(stderr, "no licence: %s\n", getenv("FAILS"));
        return 3;
    }
    struct pollfd ports[] = {{listening(8080), POLLIN, 0}, {listening(9090), POLLIN, 0}};
    for (;;)
        if (poll(ports, 2, -1) > 0)
            for (int n = 0; n < 2; n++)
                if (ports[n].revents)
                    answer(ports[n].fd, n ? 9090 : 8080);
}
