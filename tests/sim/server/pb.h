/*
 * pb.h -- Hrana's Protobuf from its JSON and back, by a table of the messages.
 *
 * The clients of the simulator write and read JSON only; on the wire it may be Protobuf.  The table
 * was written from the protocol and shares nothing with the server's own codec.  An answer that
 * has a field that is not in the table, or of another wire type, fails the run.
 */
#pragma once

#include "base/base.h"

typedef enum PbWhat { PB_PIPELINE, PB_CURSOR, PB_CLIENT_MSG } PbWhat;
typedef enum PbAnswer { PB_PIPELINE_RESP, PB_CURSOR_RESP, PB_CURSOR_ENTRY, PB_SERVER_MSG } PbAnswer;

/* JSON text of a request into Protobuf, appended.  Errors: ERR_NOMEM. */
MUST_CHECK Err pb_request(PbWhat what, Slice json, Buf *out);
/* The other way for an answer; `steps`: of the batch that it answers, whose results have holes. */
MUST_CHECK Err pb_answer(PbAnswer what, Slice bytes, u32 steps, Buf *json_out);
/* A number in front of a message; false: not whole. */
MUST_CHECK bool pb_varint_take(Slice *rest, u64 *value_out);
