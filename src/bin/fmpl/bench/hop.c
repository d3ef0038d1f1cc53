/* The raw hop: one cache line that two pinned processes write in turn, and nothing else. It is the yardstick of short messages,
 * so it links no messaging library at all.
 *
 * hop CPU0 CPU1: reads lines "K PAYLOAD" (PAYLOAD 0: 8 B; 1: 8 B and 56 B beside it in the same line) from standard input and
 * answers with the nanoseconds of one hop, the least of five runs of K round trips.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static uint64_t seen;

/* K round trips from this side; `first` writes odd numbers, the other answers with even ones. */
static void play(volatile uint64_t *line, int first, long k, int payload, uint64_t *base)
{
    uint64_t n = *base;
    for (long i = 0; i < k; i++) {
        if (first) {
            if (payload) for (int w = 1; w < 8; w++) line[w] = n + w;
            __atomic_store_n(line, n + 1, __ATOMIC_RELEASE);
            while (__atomic_load_n(line, __ATOMIC_ACQUIRE) != n + 2) ;
            if (payload) for (int w = 1; w < 8; w++) seen += line[w];
        } else {
            while (__atomic_load_n(line, __ATOMIC_ACQUIRE) != n + 1) ;
            if (payload) for (int w = 1; w < 8; w++) { seen += line[w]; }
            if (payload) for (int w = 1; w < 8; w++) line[w] = n + w + 1;
            __atomic_store_n(line, n + 2, __ATOMIC_RELEASE);
        }
        n += 2;
    }
    *base = n;
}

enum { RUNS = 5, WARM = 100 };

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    uint64_t *line = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), base = 0;
    int go[2];
    if (line == MAP_FAILED || pipe(go)) return 2;
    memset(line, 0, 4096);
    pid_t parent = getpid();
    if (fork() == 0) {
        long order[2];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) return 0;
        close(go[1]);
        pin(atoi(argv[2]));
        while (read(go[0], order, sizeof order) == sizeof order) play(line, 0, order[0] * RUNS + WARM, (int)order[1], &base);
        return 0;
    }
    close(go[0]);
    pin(atoi(argv[1]));
    char text[128];
    while (fgets(text, sizeof text, stdin)) {
        long order[2] = {0, 0};
        if (sscanf(text, "%ld %ld", &order[0], &order[1]) < 1 || order[0] < 1) return 2;
        if (write(go[1], order, sizeof order) != sizeof order) return 2;
        double least = 1e18;
        play(line, 1, WARM, (int)order[1], &base);
        for (int r = 0; r < RUNS; r++) {
            double t0 = now_ns();
            play(line, 1, order[0], (int)order[1], &base);
            double t = (now_ns() - t0) / order[0] / 2;
            if (t < least) least = t;
        }
        printf("%.3f\n", least);
        fflush(stdout);
    }
    return seen == 1;
}
