/*
 * tls.c -- OpenSSL on top of rt's sockets.
 *
 * The BIO reads and writes without waiting; SSL_read and SSL_write then say what they want, and the
 * fiber waits for the socket outside of OpenSSL.  Buffers are released while nothing moves.
 */
#include "server/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "rt/lock.h"

struct TlsContext {
    RtU32 references; /* The server's, and one for each connection. */
    SSL_CTX *ssl;
    BIO_METHOD *method;
};

struct Tls {
    TlsContext *context;
    RtSocket *socket;
    RtMutex lock; /* Around every call of OpenSSL: one task may read while another writes. */
    SSL *ssl;
    Buf seen; /* Read before TLS began; given to OpenSSL first. */
    size_t seen_at;
    bool ended; /* The socket's input ended. */
    bool failed;
};

/*
 * OpenSSL's memory in the account of the process.  Its blocks are ours, which know their size; who
 * meets the cap gets NULL, which OpenSSL takes as it must.
 */
static MemAccount *
libraries(void)
{
    return rt_process_part(rt_process_default(), RT_PART_LIBRARIES);
}

static void *
counted_alloc(size_t bytes, const char *file, int line)
{
    MemAccount *account = libraries();
    (void)file, (void)line;
    if (bytes == 0 || mem_account_charge(account, bytes) != OK) return NULL;
    void *block = mem_alloc(bytes);
    if (block == NULL) mem_account_release(account, bytes);
    return block;
}

static void
counted_free(void *block, const char *file, int line)
{
    (void)file, (void)line;
    if (block == NULL) return;
    mem_account_release(libraries(), mem_block_bytes(block));
    mem_free(block);
}

static void *
counted_realloc(void *block, size_t bytes, const char *file, int line)
{
    if (block == NULL) return counted_alloc(bytes, file, line);
    if (bytes == 0) {
        counted_free(block, file, line);
        return NULL;
    }
    MemAccount *account = libraries();
    size_t before = mem_block_bytes(block);
    if (mem_account_charge(account, bytes) != OK) return NULL;
    void *moved = mem_realloc(block, bytes);
    mem_account_release(account, moved != NULL ? before : bytes);
    return moved;
}

bool
tls__count_memory(void)
{
    return CRYPTO_set_mem_functions(counted_alloc, counted_realloc, counted_free) == 1;
}

static Err
openssl_fail(ErrMsg *msg, const char *what, const char *file)
{
    char text[160] = "";
    unsigned long code = ERR_get_error();
    if (code != 0) ERR_error_string_n(code, text, sizeof(text));
    ERR_clear_error();
    return err_set(msg, ERR_MISUSE, "%s %s: %s", what, file, text);
}

/* ---- BIO ---- */

static int
bio_read(BIO *bio, char *to, int count)
{
    Tls *tls = BIO_get_data(bio);
    size_t got = 0;
    BIO_clear_retry_flags(bio);
    if (count <= 0) return 0;
    size_t left = tls->seen.bytes - tls->seen_at;
    if (left > 0) {
        got = MIN_OF(left, (size_t)count);
        memcpy(to, tls->seen.p + tls->seen_at, got);
        tls->seen_at += got;
        if (tls->seen_at == tls->seen.bytes) {
            buf_free(&tls->seen);
            tls->seen_at = 0;
        }
        return (int)got;
    }
    Err err = rt_socket_read(tls->socket, to, (size_t)count, 0, &got, NULL);
    if (err == ERR_TIMEOUT) BIO_set_retry_read(bio);
    if (err != OK) return -1;
    if (got > 0) return (int)got;
    /* Not an end for OpenSSL, which would write no more: we may have closed for reading only. */
    tls->ended = true;
    BIO_set_retry_read(bio);
    return -1;
}

static int
bio_write(BIO *bio, const char *from, int count)
{
    Tls *tls = BIO_get_data(bio);
    size_t done = 0;
    BIO_clear_retry_flags(bio);
    if (count <= 0) return 0;
    if (rt_socket_write_some(tls->socket, from, (size_t)count, &done, NULL) != OK) return -1;
    if (done > 0) return (int)done;
    BIO_set_retry_write(bio);
    return -1;
}

static long
bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

/* ---- context ---- */

Err
tls__context_new(const char *cert, const char *key, TlsContext **context_out, ErrMsg *msg)
{
    Err err = OK;
    *context_out = NULL;
    ERR_clear_error();
    TlsContext *context = MEM_NEW(TlsContext);
    if (context == NULL) return err_set(msg, ERR_NOMEM, NULL);
    rt_word_init(&context->references, 1u);
    context->ssl = SSL_CTX_new(TLS_server_method());
    context->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft");
    if (context->ssl == NULL || context->method == NULL) {
        err = err_set(msg, ERR_NOMEM, NULL);
        goto done;
    }
    BIO_meth_set_read(context->method, bio_read);
    BIO_meth_set_write(context->method, bio_write);
    BIO_meth_set_ctrl(context->method, bio_ctrl);
    SSL_CTX_set_min_proto_version(context->ssl, TLS1_2_VERSION);
    SSL_CTX_set_mode(context->ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context->ssl, 0);
    SSL_CTX_set_options(context->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    if (SSL_CTX_use_certificate_chain_file(context->ssl, cert) != 1)
        err = openssl_fail(msg, "certificate", cert);
    else if (SSL_CTX_use_PrivateKey_file(context->ssl, key, SSL_FILETYPE_PEM) != 1 ||
             SSL_CTX_check_private_key(context->ssl) != 1)
        err = openssl_fail(msg, "private key", key);

done:
    if (err != OK) {
        tls__context_free(context);
        return err;
    }
    *context_out = context;
    return OK;
}

void
tls__context_free(TlsContext *context)
{
    if (context == NULL || rt_fetch_sub(&context->references, 1u) > 1) return;
    SSL_CTX_free(context->ssl);
    BIO_meth_free(context->method);
    mem_free(context);
}

/* ---- connections ---- */

Tls *
tls__new(TlsContext *context, RtSocket *socket, Slice seen)
{
    Tls *tls = MEM_NEW(Tls);
    if (tls == NULL) return NULL;
    tls->context = context;
    rt_fetch_add(&context->references, 1u);
    tls->socket = socket;
    tls->ssl = SSL_new(context->ssl);
    BIO *bio = tls->ssl == NULL ? NULL : BIO_new(context->method);
    if (bio == NULL || buf_append(&tls->seen, seen.p, seen.bytes) != OK) {
        BIO_free(bio);
        tls__free(tls);
        return NULL;
    }
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_accept_state(tls->ssl);
    return tls;
}

/* What one call of OpenSSL came to; decided under the lock. */
typedef enum Outcome { DONE, WANTS_READ, WANTS_WRITE, ENDED, FAILED } Outcome;

static Outcome
outcome_of(Tls *tls, int result)
{
    if (result > 0) return DONE;
    int what = SSL_get_error(tls->ssl, result);
    ERR_clear_error();
    if (what == SSL_ERROR_WANT_READ) return WANTS_READ;
    if (what == SSL_ERROR_WANT_WRITE) return WANTS_WRITE;
    if (what == SSL_ERROR_ZERO_RETURN) return ENDED;
    tls->failed = true;
    return FAILED;
}

static Err
tls_wait(Tls *tls, Outcome outcome, u64 deadline_ns)
{
    u32 ready;
    if (outcome == WANTS_READ && deadline_ns == 0) return ERR_TIMEOUT;
    u32 what = outcome == WANTS_READ ? RT_SOCKET_READABLE : RT_SOCKET_WRITABLE;
    return rt_socket_wait(tls->socket, what, deadline_ns, &ready);
}

Err
tls__read(Tls *tls, void *bytes, size_t count, u64 deadline_ns, size_t *got_out)
{
    *got_out = 0;
    for (;;) {
        if (tls->failed) return ERR_CLOSED;
        rt_mutex_lock(&tls->lock);
        ERR_clear_error();
        int got = SSL_read(tls->ssl, bytes, (int)MIN_OF(count, (size_t)1 << 30));
        Outcome outcome = outcome_of(tls, got);
        rt_mutex_unlock(&tls->lock);
        if (outcome == DONE) *got_out = (size_t)got;
        if (outcome == DONE || outcome == ENDED) return OK;
        if (outcome == FAILED || tls->ended) return ERR_CLOSED; /* Cut off is no end. */
        Err err = tls_wait(tls, outcome, deadline_ns);
        if (err != OK) return err;
    }
}

Err
tls__write(Tls *tls, const void *bytes, size_t count, u64 deadline_ns)
{
    const u8 *at = bytes;
    while (count > 0) {
        if (tls->failed) return ERR_CLOSED;
        rt_mutex_lock(&tls->lock);
        ERR_clear_error();
        int done = SSL_write(tls->ssl, at, (int)MIN_OF(count, (size_t)1 << 30));
        Outcome outcome = outcome_of(tls, done);
        rt_mutex_unlock(&tls->lock);
        if (outcome == ENDED || outcome == FAILED) return ERR_CLOSED;
        if (outcome == DONE) {
            at += done;
            count -= (size_t)done;
            continue;
        }
        Err err = tls_wait(tls, outcome, deadline_ns);
        if (err != OK) return err;
    }
    return OK;
}

void
tls__shutdown(Tls *tls)
{
    if (tls->failed || !SSL_is_init_finished(tls->ssl)) return;
    ERR_clear_error();
    (void)SSL_shutdown(tls->ssl);
    ERR_clear_error();
}

void
tls__free(Tls *tls)
{
    if (tls == NULL) return;
    SSL_free(tls->ssl);
    tls__context_free(tls->context);
    buf_free(&tls->seen);
    mem_free(tls);
}
