/*
 * What two processes of this machine can do at best, without any library.
 *
 *   limit                     mean round trip of one cache line, in microseconds, for a second
 *   limit pingpong MS         the same for that long: one line for each batch of round trips, its mean in nanoseconds
 *   limit stream SIZE MS      messages of SIZE bytes, copied into a ring and out of it: bytes, and nanoseconds
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Of the time that is measured; a count of round trips would take minutes where both share a core. */
#define WARM_UP 0.1

enum { MEAN_MS = 1000, BATCH = 1000, CACHE_LINE = 64, RING_SIZE = 1 << 18, CHUNK_MAX = RING_SIZE / 4 };

typedef struct {
  _Alignas(CACHE_LINE) atomic_ulong ping;
  _Alignas(CACHE_LINE) atomic_ulong pong;
  _Alignas(CACHE_LINE) atomic_int is_over;
  _Alignas(CACHE_LINE) char ring[RING_SIZE];
} Shared;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e9 + now.tv_nsec;
}

/* Both look in a loop, and would keep two cores for ever when whoever started them is killed. */
static void go_with_parent(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static pid_t fork_partner(void) {
  pid_t pid = fork();
  if (pid == 0) go_with_parent();
  return pid;
}

static Shared *share(void) {
  return mmap(0, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void answer(Shared *shared) {
  for (unsigned long i = 1;; i++) {
    while (atomic_load(&shared->ping) != i)
      if (atomic_load(&shared->is_over)) _exit(0);
    atomic_store(&shared->pong, i);
  }
}

static double bounce(Shared *shared, unsigned long *done) {
  double start = now_ns();
  for (unsigned long last = *done + BATCH; *done < last;) {
    atomic_store(&shared->ping, ++*done);
    while (atomic_load(&shared->pong) != *done) {}
  }
  return (now_ns() - start) / BATCH;
}

static void ping_pong(double ms) {
  Shared *shared = share();
  unsigned long done = 0;
  if (fork_partner() == 0) answer(shared);
  if (ms < 0) {
    double start = now_ns();
    do bounce(shared, &done);
    while (now_ns() < start + MEAN_MS * 1e6);
    printf("%.4f\n", (now_ns() - start) / done / 1000);
  } else {
    for (double end = now_ns() + WARM_UP * ms * 1e6; now_ns() < end;) bounce(shared, &done);
    for (double end = now_ns() + ms * 1e6; now_ns() < end;) printf("%.1f\n", bounce(shared, &done));
  }
  atomic_store(&shared->is_over, 1);
  wait(0);
}

/* Reads what the sender has published; ping counts bytes in, pong bytes out. */
static void receive(Shared *shared, char *into, size_t chunk) {
  unsigned long got = 0;
  double start = 0;
  for (;;) {
    unsigned long published = atomic_load(&shared->ping);
    if (published == got) {
      /* What was published before the end is published when the end is seen. */
      if (atomic_load(&shared->is_over) && atomic_load(&shared->ping) == got) break;
      continue;
    }
    if (start == 0) start = now_ns();
    while (got < published) {
      size_t at = got % RING_SIZE, length = published - got;
      if (length > chunk) length = chunk;
      if (length > RING_SIZE - at) length = RING_SIZE - at;
      memcpy(into, shared->ring + at, length);
      got += length;
    }
    atomic_store(&shared->pong, got);
  }
  printf("%lu %.0f\n", got, now_ns() - start);
}

static void stream(size_t size, double ms) {
  Shared *shared = share();
  size_t chunk = size < CHUNK_MAX ? size : CHUNK_MAX;
  char *bytes = malloc(chunk);
  memset(bytes, 1, chunk);
  if (fork_partner() == 0) {
    receive(shared, bytes, chunk);
    fflush(stdout);
    _exit(0);
  }
  unsigned long sent = 0, seen = 0;
  double end = now_ns() + ms * 1e6;
  do {
    for (size_t left = size; left > 0;) {
      size_t length = left < chunk ? left : chunk, at = sent % RING_SIZE, before_end = RING_SIZE - at;
      while (sent + length - seen > RING_SIZE) seen = atomic_load(&shared->pong);
      size_t first = length < before_end ? length : before_end;
      memcpy(shared->ring + at, bytes, first);
      memcpy(shared->ring, bytes + first, length - first);
      sent += length;
      left -= length;
      atomic_store(&shared->ping, sent);
    }
  } while (now_ns() < end);
  atomic_store(&shared->is_over, 1);
  wait(0);
}

int main(int count, char **words) {
  go_with_parent();
  setvbuf(stdout, NULL, _IOFBF, 1 << 20);
  if (count == 4 && strcmp(words[1], "stream") == 0) stream(strtoul(words[2], 0, 10), atof(words[3]));
  else ping_pong(count == 3 ? atof(words[2]) : -1);
  return 0;
}
