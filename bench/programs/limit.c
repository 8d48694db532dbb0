/* What two processes of this machine can do at best: round trips of one cache line, in microseconds. */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 3000000, CACHE_LINE_INTS = 16 };

int main(void) {
  atomic_int *ping = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  atomic_int *pong = ping + 4 * CACHE_LINE_INTS;
  if (fork() == 0) {
    for (int i = 1; i <= ROUNDS; i++) {
      while (atomic_load(ping) != i) {}
      atomic_store(pong, i);
    }
    _exit(0);
  }
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int i = 1; i <= ROUNDS; i++) {
    atomic_store(ping, i);
    while (atomic_load(pong) != i) {}
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  double ns = (end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec);
  printf("%.4f\n", ns / 1000 / ROUNDS);
  return 0;
}
