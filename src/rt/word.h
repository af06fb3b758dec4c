/*
 * word.h -- the only accessors for words that tasks share.
 *
 * A shared word has one of the four types below; wrapping the atomic in a struct keeps plain reads
 * and writes from compiling.  The functions are chosen by the word's type, so one name serves all:
 *
 *     RtU32 word; RtU64 word; RtU8 word; RtPtr word;
 *
 *     rt_load_relaxed(w) rt_load_acquire(w) rt_load(w)         read; rt_load is seq_cst
 *     rt_store_relaxed(w, v) rt_store_release(w, v) rt_store(w, v)
 *     rt_cas(w, &expected, desired)          strong, seq_cst; on failure expected = what was there
 *     rt_cas_weak(w, &expected, desired)     acquire on success, relaxed on failure, may fail idly
 *     rt_exchange(w, v)                      acq_rel, as all the fetch functions
 *     rt_fetch_add(w, v) rt_fetch_sub(w, v) rt_fetch_or(w, v) rt_fetch_and(w, v)   not for RtPtr
 *
 * In check builds each of them is a yield point: inside the simulator another task may run right
 * before the access.  Elsewhere they are the bare instruction.
 *
 * rt_word_init(w, v) is for words that no other task can see yet.
 */
#pragma once

#include <stdatomic.h>

#include "base/types.h"

typedef struct RtU8 {
    _Atomic u8 atom;
} RtU8;
typedef struct RtU32 {
    _Atomic u32 atom;
} RtU32;
typedef struct RtU64 {
    _Atomic u64 atom;
} RtU64;
typedef struct RtPtr {
    _Atomic(void *) atom;
} RtPtr;

/* A yield point of the simulator: free in release builds, a test of one flag in check builds. */
#ifdef WEFT_CHECK
extern bool rt__sim_running; /* Written by the simulator's only thread while nothing else runs. */
void rt__sim_yield(void);
static ALWAYS_INLINE void
rt_yield_point(void)
{
    if (UNLIKELY(rt__sim_running)) rt__sim_yield();
}
#else
static ALWAYS_INLINE void
rt_yield_point(void)
{
}
#endif

/* The seq_cst fence, also a yield point.  TSan does not know fences, so there it is an RMW. */
static ALWAYS_INLINE void
rt_fence(void)
{
    rt_yield_point();
#ifdef WEFT_TSAN
    static _Atomic u32 fence_word;
    atomic_fetch_add(&fence_word, 0);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

#define RT_WORD_COMMON(T, W, name)                                                                \
    static ALWAYS_INLINE void rt_##name##_init(W *w, T v)                                         \
    {                                                                                             \
        atomic_init(&w->atom, v);                                                                 \
    }                                                                                             \
    static ALWAYS_INLINE T rt_##name##_load_relaxed(const W *w)                                   \
    {                                                                                             \
        rt_yield_point();                                                                         \
        return atomic_load_explicit(&((W *)(uintptr_t)w)->atom, memory_order_relaxed);            \
    }                                                                                             \
    static ALWAYS_INLINE T rt_##name##_load_acquire(const W *w)                                   \
    {                                                                                             \
        rt_yield_point();                                                                         \
        return atomic_load_explicit(&((W *)(uintptr_t)w)->atom, memory_order_acquire);            \
    }                                                                                             \
    static ALWAYS_INLINE T rt_##name##_load(const W *w)                                           \
    {                                                                                             \
        rt_yield_point();                                                                         \
        return atomic_load_explicit(&((W *)(uintptr_t)w)->atom, memory_order_seq_cst);            \
    }                                                                                             \
    static ALWAYS_INLINE void rt_##name##_store_relaxed(W *w, T v)                                \
    {                                                                                             \
        rt_yield_point();                                                                         \
        atomic_store_explicit(&w->atom, v, memory_order_relaxed);                                 \
    }                                                                                             \
    static ALWAYS_INLINE void rt_##name##_store_release(W *w, T v)                                \
    {                                                                                             \
        rt_yield_point();                                                                         \
        atomic_store_explicit(&w->atom, v, memory_order_release);                                 \
    }                                                                                             \
    static ALWAYS_INLINE void rt_##name##_store(W *w, T v)                                        \
    {                                                                                             \
        rt_yield_point();                                                                         \
        atomic_store_explicit(&w->atom, v, memory_order_seq_cst);                                 \
    }                                                                                             \
    static ALWAYS_INLINE bool rt_##name##_cas(W *w, T *expected, T desired)                       \
    {                                                                                             \
        rt_yield_point();                                                                         \
        return atomic_compare_exchange_strong(&w->atom, expected, desired);                       \
    }                                                                                             \
    static ALWAYS_INLINE bool rt_##name##_cas_weak(W *w, T *expected, T desired)                  \
    {                                                                                             \
        rt_yield_point();                                                                         \
        return atomic_compare_exchange_weak_explicit(&w->atom, expected, desired,                 \
                                                     memory_order_acquire, memory_order_relaxed); \
    }                                                                                             \
    static ALWAYS_INLINE T rt_##name##_exchange(W *w, T v)                                        \
    {                                                                                             \
        rt_yield_point();                                                                         \
        return atomic_exchange_explicit(&w->atom, v, memory_order_acq_rel);                       \
    }

#define RT_WORD_ARITHMETIC(T, W, name)                                       \
    static ALWAYS_INLINE T rt_##name##_fetch_add(W *w, T v)                  \
    {                                                                        \
        rt_yield_point();                                                    \
        return atomic_fetch_add_explicit(&w->atom, v, memory_order_acq_rel); \
    }                                                                        \
    static ALWAYS_INLINE T rt_##name##_fetch_sub(W *w, T v)                  \
    {                                                                        \
        rt_yield_point();                                                    \
        return atomic_fetch_sub_explicit(&w->atom, v, memory_order_acq_rel); \
    }                                                                        \
    static ALWAYS_INLINE T rt_##name##_fetch_or(W *w, T v)                   \
    {                                                                        \
        rt_yield_point();                                                    \
        return atomic_fetch_or_explicit(&w->atom, v, memory_order_acq_rel);  \
    }                                                                        \
    static ALWAYS_INLINE T rt_##name##_fetch_and(W *w, T v)                  \
    {                                                                        \
        rt_yield_point();                                                    \
        return atomic_fetch_and_explicit(&w->atom, v, memory_order_acq_rel); \
    }

RT_WORD_COMMON(u8, RtU8, u8)
RT_WORD_COMMON(u32, RtU32, u32)
RT_WORD_COMMON(u64, RtU64, u64)
RT_WORD_COMMON(void *, RtPtr, ptr)
RT_WORD_ARITHMETIC(u8, RtU8, u8)
RT_WORD_ARITHMETIC(u32, RtU32, u32)
RT_WORD_ARITHMETIC(u64, RtU64, u64)

#define RT_WORD_PICK(w, verb) \
    _Generic((w),                                                                                  \
        RtU8 *: rt_u8_##verb,                                                                      \
        const RtU8 *: rt_u8_##verb,                                                                \
        RtU32 *: rt_u32_##verb,                                                                    \
        const RtU32 *: rt_u32_##verb,                                                              \
        RtU64 *: rt_u64_##verb,                                                                    \
        const RtU64 *: rt_u64_##verb,                                                              \
        RtPtr *: rt_ptr_##verb,                                                                    \
        const RtPtr *: rt_ptr_##verb)
#define RT_NUMBER_PICK(w, verb) \
    _Generic((w), RtU8 * : rt_u8_##verb, RtU32 * : rt_u32_##verb, RtU64 * : rt_u64_##verb)

#define rt_word_init(w, v)                RT_WORD_PICK(w, init)(w, v)
#define rt_load_relaxed(w)                RT_WORD_PICK(w, load_relaxed)(w)
#define rt_load_acquire(w)                RT_WORD_PICK(w, load_acquire)(w)
#define rt_load(w)                        RT_WORD_PICK(w, load)(w)
#define rt_store_relaxed(w, v)            RT_WORD_PICK(w, store_relaxed)(w, v)
#define rt_store_release(w, v)            RT_WORD_PICK(w, store_release)(w, v)
#define rt_store(w, v)                    RT_WORD_PICK(w, store)(w, v)
#define rt_cas(w, expected, desired)      RT_WORD_PICK(w, cas)(w, expected, desired)
#define rt_cas_weak(w, expected, desired) RT_WORD_PICK(w, cas_weak)(w, expected, desired)
#define rt_exchange(w, v)                 RT_WORD_PICK(w, exchange)(w, v)
#define rt_fetch_add(w, v)                RT_NUMBER_PICK(w, fetch_add)(w, v)
#define rt_fetch_sub(w, v)                RT_NUMBER_PICK(w, fetch_sub)(w, v)
#define rt_fetch_or(w, v)                 RT_NUMBER_PICK(w, fetch_or)(w, v)
#define rt_fetch_and(w, v)                RT_NUMBER_PICK(w, fetch_and)(w, v)

/* Copy bytes that others may change meanwhile (an optimistic page read): the caller validates
   afterwards.  In the simulator the copy is cut at a drawn point by a yield.  Word-wise relaxed
   loads, so that it is no data race to the compiler or to TSan.  Both addresses 8-aligned. */
void rt_copy_racy(void *to, const void *from, size_t bytes);
