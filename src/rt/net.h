/*
 * net.h -- stream sockets: TCP and Unix.
 *
 * Addresses are text: "127.0.0.1:8080", "[::1]:8080", "localhost:0" (0: any free port),
 * "unix:/path".  Sockets are non-blocking inside; on a thread a wait polls, on a fiber it parks
 * with the loop's epoll, in the simulator with the simulated network.
 *
 * Deadlines are absolute (rt_now_ns), RT_FOREVER, or 0 for one try.  Errors: ERR_TIMEOUT (deadline
 * passed; with 0: would have to wait), ERR_INTERRUPT (cancelled), ERR_CLOSED (peer reset or
 * closed), ERR_LIMIT (no more handles), ERR_NOTFOUND (no such host or path), ERR_PERM, ERR_EXISTS
 * (address in use), ERR_IO.
 *
 * One task may read while another writes; rt_socket_shutdown() and rt_task_cancel() end their
 * waits.  Closing needs exclusive use.
 */
#pragma once

#include "rt/task.h"

typedef struct RtListener RtListener;
typedef struct RtSocket RtSocket;

/* Unix socket: a stale path that nobody listens on is replaced; `mode` are its permission bits
   (ignored for TCP). */
MUST_CHECK Err rt_listen(const char *address, u32 mode, RtListener **listener_out, ErrMsg *msg);
/* The bound address, with the real port. */
const char *rt_listener_address(const RtListener *listener);
/* [parks]  After ERR_LIMIT (EMFILE) wait 100 ms before the next. */
MUST_CHECK Err rt_accept(RtListener *listener, u64 deadline_ns, RtSocket **socket_out, ErrMsg *msg);
/* Ends waiting rt_accept() calls with ERR_CLOSED; new connections are refused. */
void rt_listener_shutdown(RtListener *listener);
void rt_listener_close(RtListener *listener); /* NULL allowed; removes a Unix path. */

MUST_CHECK Err rt_connect(const char *address, u64 deadline_ns, RtSocket **socket_out,
                          ErrMsg *msg); /* [parks] */
/* Up to `count` bytes, at least one; *got_out 0 with OK: the peer finished writing.  [parks] */
MUST_CHECK Err rt_socket_read(RtSocket *socket, void *bytes, size_t count, u64 deadline_ns,
                              size_t *got_out, ErrMsg *msg);
/* All bytes, or an error.  [parks] */
MUST_CHECK Err rt_socket_write(RtSocket *socket, const void *bytes, size_t count, u64 deadline_ns,
                               ErrMsg *msg);
/* As many as fit now without waiting, maybe 0: for TLS engines and output queues. */
MUST_CHECK Err rt_socket_write_some(RtSocket *socket, const void *bytes, size_t count,
                                    size_t *written_out, ErrMsg *msg);
/* Wait until the socket may be read / written.  [parks] */
#define RT_SOCKET_READABLE 1u
#define RT_SOCKET_WRITABLE 2u
MUST_CHECK Err rt_socket_wait(RtSocket *socket, u32 what, u64 deadline_ns, u32 *ready_out);
/*
 * Park a connection without a task: when the socket may be read, its peer has gone, it was shut
 * down, or the deadline passed, fn(arg) runs on a new fiber of the loop this was called on.  Until
 * then nobody else may wait for reading, and the socket may not be closed.  The caller is a fiber
 * and touches the connection no more after the call.
 * Errors: ERR_CLOSED (no loops, or they are stopping), ERR_NOMEM; then fn will not run.
 */
MUST_CHECK Err rt_socket_when_readable(RtSocket *socket, u64 deadline_ns, RtTaskFn fn, void *arg);
typedef enum RtPeer { RT_PEER_OPEN, RT_PEER_FINISHED, RT_PEER_RESET } RtPeer;
/* What is known of the peer now, without reading: FIN (it will send no more, unread bytes may
   remain) or reset.  Never waits. */
RtPeer rt_socket_peer(RtSocket *socket);
/* Watch the peer while a statement of `task` runs: when it finishes (on_finish) or resets, the task
   is cancelled.  Called by the task itself; socket NULL ends the watch.  Seen by rt_check(), at
   most 50 ms late, and on a fiber also while it is parked. */
void rt_socket_watch_peer(RtSocket *socket, RtTask *task, bool on_finish);

void rt_socket_shutdown_write(RtSocket *socket); /* FIN: the peer reads the end. */
/* Reads give the end once what has come is read; writes go on.  Ends a wait for reading. */
void rt_socket_shutdown_read(RtSocket *socket);
void rt_socket_shutdown(RtSocket *socket); /* Both ways; ends waits of other tasks. */
void rt_socket_close(RtSocket *socket);    /* NULL allowed. */
/* The peer's address for logs: "127.0.0.1:50312" or "unix". */
const char *rt_socket_peer_address(const RtSocket *socket);
bool rt_socket_is_loopback(const RtSocket *socket); /* TCP loopback or Unix. */
bool rt_socket_is_unix(const RtSocket *socket);
