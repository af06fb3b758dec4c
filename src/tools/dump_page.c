/*
 * dump_page.c -- weft dump-page: what a page of a database file holds, in words.
 */
#include "rt/console.h"
#include "store/store.h"
#include "tools/target.h"
#include "tools/tools.h"

static const char usage[] =
    "usage: weft dump-page APP.weft [PAGE | slot N]\n"
    "\n"
    "Says what page number PAGE of the newest checkpoint of APP.weft holds, or what lies in slot "
    "N\n"
    "of the file; without a number, how the file is laid out.  The file is only read, also while\n"
    "another program has it open.\n";

static bool
number_take(const char *text, u32 *number_out)
{
    u64 number = 0;
    bool good = *text != 0;
    for (; *text >= '0' && *text <= '9' && number <= U32_MAX; text++) {
        number = number * 10 + (u64)(*text - '0');
    }
    *number_out = (u32)number;
    return good && *text == 0 && number < U32_MAX;
}

static bool
arguments_take(int argc, char **argv, u32 *page_out, bool *is_slot_out)
{
    *page_out = 0;
    *is_slot_out = argc == 3;
    if (argc < 1 || argc > 3 || argv[0][0] == '-') return false;
    if (argc == 3 && strcmp(argv[1], "slot") != 0) return false;
    if (argc > 1 && !number_take(argv[argc - 1], page_out)) return false;
    return argc != 2 || *page_out != 0; /* There is no page 0. */
}

int
tools_dump_page(int argc, char **argv)
{
    u32 page;
    bool is_slot;
    if (!arguments_take(argc, argv, &page, &is_slot)) {
        complain("%s", usage);
        return 1;
    }
    Buf text = {0};
    ErrMsg msg = {0};
    Err err = store_dump_page(argv[0], page, is_slot, &text, &msg);
    if (err == OK) err = rt_std_write(RT_STDOUT, text.p, text.bytes);
    if (err != OK) {
        complain("weft dump-page: %s", msg.err == OK ? err_text(err) : err_message(&msg));
    }
    err_clear(&msg);
    buf_free(&text);
    return err == OK ? 0 : 1;
}
