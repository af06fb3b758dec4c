/* edit.c -- see edit.h. */
#include "shell/edit.h"

#include <histedit.h>
#include <stdio.h>
#include <string.h>

#define HISTORY_LINES 2000

struct Edit {
    EditLine *line;
    History *history;
    char *history_path;
    char *prompt;
};

static char *
edit_prompt(EditLine *line)
{
    Edit *edit = NULL;
    el_get(line, EL_CLIENTDATA, &edit);
    return edit->prompt;
}

Edit *
edit_open(const char *history_path)
{
    HistEvent event;
    Edit *edit = MEM_NEW(Edit);
    if (edit == NULL) return NULL;
    edit->line = el_init("weft", stdin, stdout, stderr);
    edit->history = history_init();
    if (edit->line == NULL || edit->history == NULL) {
        edit_close(edit);
        return NULL;
    }
    if (history_path != NULL) edit->history_path = mem_strdup(history_path);
    history(edit->history, &event, H_SETSIZE, HISTORY_LINES);
    history(edit->history, &event, H_SETUNIQUE, 1);
    if (edit->history_path != NULL) history(edit->history, &event, H_LOAD, edit->history_path);
    el_set(edit->line, EL_CLIENTDATA, edit);
    el_set(edit->line, EL_PROMPT, edit_prompt);
    el_set(edit->line, EL_EDITOR, "emacs");
    el_set(edit->line, EL_HIST, history, edit->history);
    el_source(edit->line, NULL); /* The user's ~/.editrc. */
    return edit;
}

bool
edit_line(Edit *edit, const char *prompt, Slice *line_out, bool *interrupted_out)
{
    int count = 0;
    *interrupted_out = false;
    mem_free(edit->prompt);
    edit->prompt = mem_strdup(prompt);
    if (edit->prompt == NULL) return false;
    const char *text = el_gets(edit->line, &count);
    if (text == NULL || count <= 0) {
        *interrupted_out = count < 0; /* The read was ended by a signal. */
        return *interrupted_out;
    }
    size_t bytes = (size_t)count;
    if (text[bytes - 1] == '\n') bytes--;
    *line_out = SLICE(text, bytes);
    return true;
}

void
edit_remember(Edit *edit, const char *text)
{
    HistEvent event;
    history(edit->history, &event, H_ENTER, text);
}

void
edit_close(Edit *edit)
{
    HistEvent event;
    if (edit == NULL) return;
    if (edit->history != NULL && edit->history_path != NULL)
        history(edit->history, &event, H_SAVE, edit->history_path);
    if (edit->history != NULL) history_end(edit->history);
    if (edit->line != NULL) el_end(edit->line);
    mem_free(edit->history_path);
    mem_free(edit->prompt);
    mem_free(edit);
}
