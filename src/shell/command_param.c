/*
 * command_param.c -- values for the parameters in statements, kept by name in the shell.
 */
#include <string.h>

#include "shell/shell.h"

static void
param_free(ShellParam *param)
{
    mem_free((void *)(uintptr_t)param->value.text.p);
    mem_free(param->name);
    mem_free(param);
}

static void
param_unset(Shell *shell, const char *name)
{
    for (ShellParam **at = &shell->params; *at != NULL; at = &(*at)->next) {
        ShellParam *param = *at;
        if (strcmp(param->name, name) != 0) continue;
        *at = param->next;
        param_free(param);
        return;
    }
}

/* The value is what the text means in SQL; a text that means nothing is itself. */
static bool
value_take(void *arg, u32 count, const LinkValue *values)
{
    LinkValue *value = arg;
    (void)count;
    *value = values[0];
    if (values[0].type != WEFT_TEXT && values[0].type != WEFT_BLOB) return true;
    char *copy = mem_strndup(values[0].text.p, values[0].text.bytes);
    value->text = SLICE(copy, values[0].text.bytes);
    return copy != NULL;
}

static bool
value_read(Shell *shell, const char *text, LinkValue *value_out)
{
    Buf sql = {0};
    LinkSink sink = {.arg = value_out, .row = value_take};
    LinkError error = {.offset = -1};
    *value_out = (LinkValue){.type = WEFT_NULL};
    Err err = buf_printf(&sql, "SELECT (%s)", text);
    bool good = err == OK && shell->link != NULL &&
                link_run(shell->link, buf_slice(&sql), &sink, NULL, NULL, &error);
    link_error_clear(&error);
    buf_free(&sql);
    if (good) return value_out->text.bytes == 0 || value_out->text.p != NULL;
    char *copy = mem_strdup(text);
    *value_out = (LinkValue){.type = WEFT_TEXT, .text = SLICE(copy, strlen(text))};
    return copy != NULL;
}

static void
param_set(Shell *shell, const char *name, char *text)
{
    ShellParam *param = MEM_NEW(ShellParam);
    if (param == NULL) {
        shell_complain(shell, "Error: out of memory");
        return;
    }
    param->name = mem_strdup(name);
    if (param->name == NULL || !value_read(shell, text, &param->value)) {
        param_free(param);
        shell_complain(shell, "Error: out of memory");
        return;
    }
    param_unset(shell, name);
    ShellParam **at = &shell->params; /* In the order of their names. */
    while (*at != NULL && strcmp((*at)->name, name) < 0)
        at = &(*at)->next;
    param->next = *at;
    *at = param;
}

static void
param_list(Shell *shell)
{
    size_t widest = 0;
    for (const ShellParam *param = shell->params; param != NULL; param = param->next)
        widest = MAX_OF(widest, strlen(param->name));
    for (const ShellParam *param = shell->params; param != NULL; param = param->next) {
        out_printf(shell, "%-*s ", (int)widest, param->name);
        out_literal(shell, &param->value);
        out_text(shell, "\n");
    }
}

void
command_param(Shell *shell, u32 count, char **argument)
{
    const char *verb = count > 0 ? argument[0] : "";
    if (count == 3 && strcmp(verb, "set") == 0) {
        param_set(shell, argument[1], argument[2]);
    } else if (count == 2 && strcmp(verb, "unset") == 0) {
        param_unset(shell, argument[1]);
    } else if (count == 1 && strcmp(verb, "list") == 0) {
        param_list(shell);
    } else if (count == 1 && strcmp(verb, "init") == 0) {
        /* SQLite makes its table here; there is none. */
    } else if (count == 1 && strcmp(verb, "clear") == 0) {
        while (shell->params != NULL)
            param_unset(shell, shell->params->name);
    } else {
        shell_usage(shell, "parameter");
    }
}
