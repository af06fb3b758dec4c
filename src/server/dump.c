/*
 * dump.c -- a database as SQL text, streamed.
 *
 * Everything is read in one transaction.  SQL itself does the quoting: for each table a query is
 * made whose only column is the INSERT statement of a row.
 */
#include "server/dump.h"

#include <stdio.h>
#include <string.h>

#define DUMP_FLUSH ((size_t)32 << 10)

typedef struct Dump {
    Conn *conn;
    Seat *seat;
    Buf out, sql;
    Fault fault;
    bool good;
} Dump;

static void
put(Dump *dump, Slice text)
{
    if (buf_append(&dump->out, text.p, text.bytes) != OK) dump->good = false;
    if (!dump->good || dump->out.bytes < DUMP_FLUSH) return;
    dump->good = http__stream(dump->conn, buf_slice(&dump->out));
    buf_clear(&dump->out);
}

typedef void (*EachRow)(Dump *dump, const Cell *row);

/* Each row of a query. */
static void
query(Dump *dump, Slice sql, EachRow each)
{
    Stmt *stmt = NULL;
    bool row = true;
    if (!dump->good) return;
    Err err = stmt_prepare(seat__session(dump->seat), sql, &stmt, NULL);
    if (err != OK) seat__fault(dump->seat, err, &dump->fault);
    dump->good = err == OK;
    while (dump->good && row) {
        dump->good = seat__step(dump->seat, stmt, &row, &dump->fault);
        if (dump->good && row) each(dump, stmt_row(stmt));
    }
    err = stmt_finalize(stmt);
    (void)err; /* In the fault. */
}

static Slice
cell_slice(const Cell *cell)
{
    return SLICE(cell->u.p, cell->type == CELL_TEXT ? cell->bytes : 0);
}

static void
each_statement(Dump *dump, const Cell *row)
{
    put(dump, cell_slice(&row[0]));
    put(dump, SLICE_LITERAL(";\n"));
}

/* row: the table's name quoted, its CREATE TABLE, and the expression that makes an INSERT. */
static void
each_table(Dump *dump, const Cell *row)
{
    Slice name = cell_slice(&row[0]), create = cell_slice(&row[1]), values = cell_slice(&row[2]);
    Buf sql = {0};
    put(dump, create);
    put(dump, SLICE_LITERAL(";\n"));
    Err err = buf_printf(&sql, "SELECT 'INSERT INTO '||%.*s FROM %.*s", (int)values.bytes,
                         (const char *)values.p, (int)name.bytes, (const char *)name.p);
    dump->good = dump->good && err == OK;
    query(dump, buf_slice(&sql), each_statement);
    buf_free(&sql);
}

/* Of each table the third column is SQL again: '"t"("a") VALUES('||quote("a")||')' */
static const char tables_sql[] =
    "SELECT m.q, m.sql, quote(m.q||'('||(SELECT "
    "group_concat('\"'||replace(x.name,'\"','\"\"')||'\"',',')"
    " FROM pragma_table_xinfo(m.name) AS x WHERE x.hidden=0)||') VALUES(')||'||'||"
    "(SELECT group_concat('quote(\"'||replace(x.name,'\"','\"\"')||'\")','||'',''||')"
    " FROM pragma_table_xinfo(m.name) AS x WHERE x.hidden=0)||'||'')''' "
    "FROM (SELECT name, sql, rowid AS r, '\"'||replace(name,'\"','\"\"')||'\"' AS q "
    "FROM sqlite_schema WHERE type='table' AND sql NOT NULL "
    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\') AS m ORDER BY m.r";

static const char rest_sql[] = "SELECT sql FROM sqlite_schema WHERE type<>'table' AND sql NOT NULL "
                               "ORDER BY type='view', type='trigger', rowid";

void
dump__reply(Conn *conn, ServedDb *db, SeatRights rights)
{
    Dump dump = {.conn = conn, .good = true};
    dump.seat = seat__open(db, "http", rt_socket_peer_address(conn->socket));
    if (dump.seat == NULL || !seat__ready(dump.seat, &dump.fault)) {
        http__reply_text(conn, 500, "the database cannot be read");
        goto done;
    }
    dump.seat->rights = rights;
    seat__begin(dump.seat, conn->socket);
    seat__statement(dump.seat, SLICE_LITERAL("/dump"));
    http__stream_begin(conn, "text/plain");
    put(&dump, SLICE_LITERAL("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n"));
    if (session_exec(seat__session(dump.seat), SLICE_LITERAL("BEGIN")) != OK) dump.good = false;
    query(&dump, SLICE_LITERAL(tables_sql), each_table);
    query(&dump, SLICE_LITERAL(rest_sql), each_statement);
    put(&dump, SLICE_LITERAL("COMMIT;\n"));
    seat__end(dump.seat);
    if (dump.good && http__stream(conn, buf_slice(&dump.out)))
        http__stream_end(conn);
    else
        conn->broken = true; /* Cut short: the last chunk is missing. */

done:
    seat__close(dump.seat);
    buf_free(&dump.out);
    fault__free(&dump.fault);
}
