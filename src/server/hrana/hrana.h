/*
 * hrana.h -- the remote protocol Hrana, versions 1 to 3: its messages as structures.
 *
 * Two encodings (JSON, Protobuf) and two carriers (HTTP, WebSocket) share what is here: decode_*.c
 * turn bytes into HranaRequest, encode.c turns results into bytes, run.c does the work on a seat.
 * Everything decoded lives in the request's arena; texts may point into the message.
 */
#pragma once

#include "server/seat.h"
#include "value/json.h"

#define HRANA_NESTING_MAX 64u /* Of conditions, and of messages. */

typedef enum HranaKind {
    HRANA_CLOSE,
    HRANA_EXECUTE,
    HRANA_BATCH,
    HRANA_SEQUENCE,
    HRANA_DESCRIBE,
    HRANA_STORE_SQL,
    HRANA_CLOSE_SQL,
    HRANA_GET_AUTOCOMMIT,
    HRANA_OPEN_STREAM,
    HRANA_CLOSE_STREAM,
    HRANA_OPEN_CURSOR,
    HRANA_CLOSE_CURSOR,
    HRANA_FETCH_CURSOR,
    HRANA_KINDS
} HranaKind;
extern const char *const hrana__kind_names[HRANA_KINDS];

/* SQL text, given or stored. */
typedef struct HranaSql {
    bool has_text, has_id;
    Slice text;
    i32 id;
} HranaSql;

typedef struct HranaNamed {
    Slice name;
    Cell value;
} HranaNamed;

typedef struct HranaStmt {
    HranaSql sql;
    Cell *arg;
    u32 arg_count;
    HranaNamed *named;
    u32 named_count;
    bool want_rows;
} HranaStmt;

typedef enum HranaCondKind {
    COND_OK,
    COND_ERROR,
    COND_NOT,
    COND_AND,
    COND_OR,
    COND_IS_AUTOCOMMIT
} HranaCondKind;

typedef struct HranaCond HranaCond;
struct HranaCond {
    u8 kind; /* HranaCondKind */
    u32 step;
    HranaCond *first; /* NOT, AND, OR */
    HranaCond *next;
};

typedef struct HranaStep {
    HranaCond *cond; /* NULL: always. */
    HranaStmt stmt;
} HranaStep;

typedef struct HranaBatch {
    HranaStep *step;
    u32 count;
} HranaBatch;

typedef struct HranaRequest {
    u8 kind; /* HranaKind */
    i32 stream_id, cursor_id;
    u32 max_count;
    HranaStmt stmt;   /* EXECUTE */
    HranaBatch batch; /* BATCH, OPEN_CURSOR */
    HranaSql sql;     /* SEQUENCE, DESCRIBE, STORE_SQL, CLOSE_SQL */
} HranaRequest;

/* What arrives on a WebSocket. */
typedef struct HranaMsg {
    bool is_hello;
    bool has_jwt;
    Slice jwt;
    i32 request_id;
    HranaRequest request;
} HranaMsg;

/* The body of POST pipeline and cursor. */
typedef struct HranaBody {
    bool has_baton;
    Slice baton;
    HranaRequest *request;
    u32 request_count;
    HranaBatch batch; /* Cursor. */
} HranaBody;

/* A message that breaks the protocol. */
typedef struct HranaError {
    bool is_syntax; /* Not JSON, not Protobuf: 1007; else 1008. */
    char text[100];
} HranaError;

/* Shared by the decoders: fill *error and return ERR_SQL. */
Err hrana__bad(HranaError *error, bool is_syntax, const char *format, ...) PRINTF_LIKE(3, 4);

/* Errors: ERR_SQL (*error says what), ERR_NOMEM. */
MUST_CHECK Err hrana__json_msg(Slice text, Arena *arena, HranaMsg *msg_out, HranaError *error);
MUST_CHECK Err hrana__json_pipeline(Slice text, Arena *arena, HranaBody *body_out,
                                    HranaError *error);
MUST_CHECK Err hrana__json_cursor(Slice text, Arena *arena, HranaBody *body_out, HranaError *error);
MUST_CHECK Err hrana__json_stmt(const JsonNode *node, Arena *arena, HranaStmt *stmt_out,
                                HranaError *error);
MUST_CHECK Err hrana__json_batch(const JsonNode *node, Arena *arena, HranaBatch *batch_out,
                                 HranaError *error);
MUST_CHECK Err hrana__json_parse(Slice text, Arena *arena, const JsonNode **root_out,
                                 HranaError *error);
MUST_CHECK Err hrana__pb_msg(Slice bytes, Arena *arena, HranaMsg *msg_out, HranaError *error);
MUST_CHECK Err hrana__pb_pipeline(Slice bytes, Arena *arena, HranaBody *body_out,
                                  HranaError *error);
MUST_CHECK Err hrana__pb_cursor(Slice bytes, Arena *arena, HranaBody *body_out, HranaError *error);

/* Conditions may only look back. */
MUST_CHECK Err hrana__check_batch(const HranaBatch *batch, u32 version, HranaError *error);
/* Everything that can be said of a request without running it. */
MUST_CHECK Err hrana__check_request(const HranaRequest *request, u32 version, HranaError *error);

/* ---- stored SQL ---- */

typedef struct HranaStored {
    i32 id;
    char *text;
    size_t bytes;
} HranaStored;
typedef struct HranaStore {
    HranaStored *item;
    u32 count, capacity;
} HranaStore;
const HranaStored *hrana__stored(const HranaStore *store, i32 id);
MUST_CHECK Err hrana__store(HranaStore *store, i32 id, Slice text);
void hrana__unstore(HranaStore *store, i32 id);
void hrana__store_free(HranaStore *store);
/* Replace ids by texts in a request.  `copy`: into the arena, because the stored text may go. */
MUST_CHECK Err hrana__resolve(HranaRequest *request, const HranaStore *store, Arena *arena,
                              HranaError *error);
MUST_CHECK Err hrana__resolve_batch(HranaBatch *batch, const HranaStore *store, Arena *arena,
                                    HranaError *error);

/* ---- writing ---- */

/*
 * One writer for both encodings.  JSON: `json` is in use; Protobuf: bytes are appended to `out` and
 * messages get their length when they end.
 */
typedef struct HranaWriter {
    Buf *out;
    bool is_pb;
    u8 version; /* 1 to 3: how infinities look in JSON. */
    Err err;
    JsonWriter json;
    Server *server; /* Whose budget the output counts in; NULL: nobody's. */
    u64 held;       /* Taken from it: give it back when the output is sent. */
} HranaWriter;

/* A place to go back to. */
typedef struct HranaMark {
    size_t bytes;
    JsonWriter json;
    Err err; /* What is lacking in front of it stays lacking. */
} HranaMark;

void hrana__writer_init(HranaWriter *writer, Buf *out, bool is_pb, u32 version, Server *server);
HranaMark hrana__mark(const HranaWriter *writer);
void hrana__back(HranaWriter *writer, HranaMark mark);
MUST_CHECK Err hrana__writer_done(const HranaWriter *writer);
/* Protobuf only: a message as field `field` (0: at the top) begins; give the mark back to end it.
 */
size_t hrana__pb_begin(HranaWriter *writer, u32 field);
void hrana__pb_end(HranaWriter *writer, size_t mark);
void hrana__pb_varint(HranaWriter *writer, u32 field, u64 value);
void hrana__pb_bytes(HranaWriter *writer, u32 field, Slice bytes);

void hrana__write_error(HranaWriter *writer, const Fault *fault);
void hrana__write_cols(HranaWriter *writer, const Stmt *stmt, u32 pb_field);
void hrana__write_row(HranaWriter *writer, const Stmt *stmt, u32 pb_field);

/* ---- running ---- */

/* Code and message as Hrana clients expect them. */
void hrana__code(const Fault *fault, char *code_out, size_t code_bytes);

/*
 * Run a request on a seat and write the response object (JSON: {"type":..., ...}; Protobuf: the
 * body of StreamResponse or of the member of ResponseOkMsg).  False: nothing was written and *fault
 * is for the client.  HRANA_STORE_SQL and _CLOSE_SQL, opening and closing are the carriers' matter.
 */
MUST_CHECK bool
hrana__run(Seat *seat, const HranaRequest *request, HranaWriter *writer, Fault *fault);
/* The StmtResult alone, and the BatchResult alone (for version 1 over HTTP). */
MUST_CHECK bool
hrana__execute(Seat *seat, const HranaStmt *stmt, HranaWriter *writer, Fault *fault);
MUST_CHECK bool
hrana__batch(Seat *seat, const HranaBatch *batch, HranaWriter *writer, Fault *fault);

/*
 * A cursor: a batch whose entries are taken one after the other.  The batch's arena must outlive
 * it.
 */
typedef struct HranaCursor {
    Seat *seat;
    const HranaBatch *batch;
    HranaWriter format; /* Encoding and version; its `out` is not used. */
    u8 *state;          /* Of each step: 0 skipped, 1 ok, 2 failed. */
    u32 step;
    Stmt *stmt; /* Open: the rows of `step` are being read. */
    u64 started_ns, rows;
    Buf held;       /* Entries of a writing statement, each after its length (u64). */
    size_t held_at; /* The next one. */
    u64 budget;     /* Taken for them. */
    bool done;
    Arena arena;
} HranaCursor;

MUST_CHECK Err hrana__cursor_open(HranaCursor *cursor, Seat *seat, const HranaBatch *batch,
                                  bool is_pb, u32 version);
/* Append the next entry, encoded alone, to `out`.  *done_out true: there is none. */
MUST_CHECK Err hrana__cursor_next(HranaCursor *cursor, Buf *out, bool *done_out);
void hrana__cursor_close(HranaCursor *cursor);
