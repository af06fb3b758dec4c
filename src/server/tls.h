/*
 * tls.h -- TLS for a connection, by OpenSSL over rt's sockets.
 *
 * OpenSSL keeps an error queue per thread, so nothing parks inside it: its BIO answers "try again"
 * and the fiber waits outside.
 */
#pragma once

#include "rt/net.h"

typedef struct Tls Tls;
typedef struct TlsContext TlsContext;

/* From now on OpenSSL's blocks are ours and count in RT_PART_LIBRARIES of the process.  For the
   program, before anything calls OpenSSL; false: something has. */
bool tls__count_memory(void);
/* Certificate chain and private key, PEM files. */
MUST_CHECK Err tls__context_new(const char *cert, const char *key, TlsContext **context_out,
                                ErrMsg *msg);
void tls__context_free(TlsContext *context); /* NULL allowed; connections keep theirs. */
/* Server side; `seen` are bytes already read from the socket.  NULL: out of memory. */
Tls *tls__new(TlsContext *context, RtSocket *socket, Slice seen);
/* As rt_socket_read/rt_socket_write; the handshake happens inside.  [parks] */
MUST_CHECK Err tls__read(Tls *tls, void *bytes, size_t count, u64 deadline_ns, size_t *got_out);
MUST_CHECK Err tls__write(Tls *tls, const void *bytes, size_t count, u64 deadline_ns);
/* Say that nothing more comes. */
void tls__shutdown(Tls *tls);
void tls__free(Tls *tls); /* NULL allowed. */
