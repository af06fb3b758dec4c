/*
 * command_param.c -- values for the parameters in statements, kept by name in the shell.
 */
#include <string.h>

#include "shell/shell.h"
#include "value/number.h"

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

static i32
hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* X'0aFF' in place; false: not of that form. */
static bool
hex_read(char *text, size_t *bytes_out)
{
    size_t length = strlen(text), bytes = 0;
    if (length < 3 || (text[0] | 32) != 'x' || text[1] != '\'' || text[length - 1] != '\'' ||
        length % 2 == 0)
        return false;
    for (size_t i = 2; i + 1 < length; i += 2) {
        i32 high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
        if (high < 0 || low < 0) return false;
        text[bytes++] = (char)(high << 4 | low);
    }
    *bytes_out = bytes;
    return true;
}

/* A number, NULL, X'..', or text as it stands. */
static bool
value_read(char *text, LinkValue *value_out)
{
    size_t bytes = strlen(text);
    NumberScan scan = number_scan(SLICE(text, bytes));
    *value_out = (LinkValue){.type = WEFT_NULL};
    if (text_compare_nocase(text, "NULL") == 0) return true;
    if (scan.whole && scan.kind != NUMBER_NONE) {
        value_out->type = scan.kind == NUMBER_INT ? WEFT_INTEGER : WEFT_FLOAT;
        value_out->i = scan.i;
        value_out->r = scan.r;
        return true;
    }
    value_out->type = hex_read(text, &bytes) ? WEFT_BLOB : WEFT_TEXT;
    if (value_out->type == WEFT_TEXT && bytes >= 2 && text[0] == '\'' && text[bytes - 1] == '\'') {
        text++;
        bytes -= 2;
    }
    char *copy = mem_strndup(text, bytes);
    value_out->text = SLICE(copy, bytes);
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
    if (param->name == NULL || !value_read(text, &param->value)) {
        param_free(param);
        shell_complain(shell, "Error: out of memory");
        return;
    }
    param_unset(shell, name);
    param->next = shell->params;
    shell->params = param;
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
    } else if (count == 1 && (strcmp(verb, "clear") == 0 || strcmp(verb, "init") == 0)) {
        while (shell->params != NULL)
            param_unset(shell, shell->params->name);
    } else {
        shell_complain(shell, "Usage: .param set NAME VALUE | unset NAME | list | clear");
    }
}
