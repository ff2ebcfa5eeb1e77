/* A server whose wall clock is as many seconds ahead as the file SHIFTED_CLOCK says. Its monotonic clock, and how long
   it waits, are those of the machine, as on a server whose clock is set. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *shift;
static int (*own_clock)(clockid_t, struct timespec *);
static int (*own_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SHIFTED_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    own_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    own_wait = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlvsym(
        RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (own_wait == 0)
        own_wait = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlsym(
            RTLD_NEXT, "pthread_cond_timedwait");
    if (file >= 0) {
        void *found = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
        if (found != MAP_FAILED)
            shift = found;
        close(file);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (own_clock == 0)
        begin();
    int failed = own_clock(clock, now);
    if (!failed && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *shift;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    int failed = clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *into) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (into)
        *into = found.tv_sec;
    return found.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    struct timespec end = *until, now;
    /* a deadline of the monotonic clock is small */
    own_clock(CLOCK_MONOTONIC, &now);
    if (shift && until->tv_sec > now.tv_sec + 1000000000L)
        end.tv_sec -= *shift;
    return own_wait(condition, mutex, &end);
}
