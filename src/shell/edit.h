/*
 * edit.h -- line editing with history, on libedit; the only file of the project that knows it.
 */
#pragma once

#include "base/base.h"

typedef struct Edit Edit;

/* `history_path` may be NULL.  NULL when the terminal cannot be used. */
Edit *edit_open(const char *history_path);
/* Read one line, without its LF; valid until the next call.  False at the end of input.
 *interrupted_out: Ctrl-C was pressed, there is no line. */
bool edit_line(Edit *edit, const char *prompt, Slice *line_out, bool *interrupted_out);
/* Put a text into the history, where the arrow keys find it. */
void edit_remember(Edit *edit, const char *text);
/* Saves the history.  NULL allowed. */
void edit_close(Edit *edit);
