/*
 * types.h -- integer names, compiler attributes and small arithmetic helpers.
 */
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;

#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX
#define I64_MAX INT64_MAX
#define I64_MIN INT64_MIN

#define MUST_CHECK                __attribute__((warn_unused_result))
#define NORETURN                  __attribute__((noreturn))
#define NOINLINE                  __attribute__((noinline))
#define ALWAYS_INLINE             inline __attribute__((always_inline))
#define PRINTF_LIKE(f, a)         __attribute__((format(printf, f, a)))
#define FALLTHROUGH               __attribute__((fallthrough))
#define EXPORT                    __attribute__((visibility("default")))
#define LIKELY(x)                 __builtin_expect(!!(x), 1)
#define UNLIKELY(x)               __builtin_expect(!!(x), 0)
#define STATIC_ASSERT(c)          _Static_assert(c, #c)
#define COUNT_OF(array)           (sizeof(array) / sizeof((array)[0]))
#define MIN_OF(a, b)              ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b)              ((a) > (b) ? (a) : (b))
#define ALIGN_UP(n, a)            (((size_t)(n) + ((size_t)(a)-1)) & ~((size_t)(a)-1))
#define CONTAINER_OF(p, T, field) ((T *)(void *)((char *)(p)-offsetof(T, field)))

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define WEFT_TSAN 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define WEFT_TSAN 1
#endif
#endif

/* A borrowed run of bytes; not NUL-terminated unless its source says so. */
typedef struct Slice {
    const u8 *p;
    size_t bytes;
} Slice;

#define SLICE_NONE          ((Slice){NULL, 0})
#define SLICE(ptr, n)       ((Slice){(const u8 *)(ptr), (n)})
#define SLICE_LITERAL(text) ((Slice){(const u8 *)(text), sizeof(text) - 1})
