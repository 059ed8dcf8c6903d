/* sinter_pool: how a compiled net (--threads) hands work to the application's threads. Plain C.
 *
 * The application owns the threads; sinter/thread_pool.h is a pool for those that have none. A net cuts the
 * loops of its large layers into parts that do not depend on each other; which thread takes which part, and
 * how many threads there are, has no influence on a single bit of the results. */
#ifndef SINTER_POOL_H_
#define SINTER_POOL_H_

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sinter_pool {
  /* Calls task(argument, i) once for every i in [0, count), on whatever threads and in whatever order, and
   * returns when all calls have returned. A net never calls it from inside a task. */
  void (*run)(const struct sinter_pool* pool, int count, void (*task)(void* argument, int i), void* argument);
  void* context;
} sinter_pool;

#ifdef __cplusplus
}
#endif

#endif /* SINTER_POOL_H_ */
