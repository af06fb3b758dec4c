/*
 * export.c -- weft export: a Weft database becomes a SQLite file.
 */
#include "rt/console.h"
#include "rt/process.h"
#include "rt/time.h"
#include "tools/target.h"
#include "tools/tools.h"
#include "transfer/transfer.h"

static const char usage[] =
    "usage: weft export [options] APP.weft APP.db\n"
    "\n"
    "Writes the contents of the Weft database APP.weft into the new SQLite database APP.db.\n"
    "\n"
    "  --page-size N         512 to 65536; default: that of the file it was imported from, or "
    "4096\n"
    "  --encoding E          utf8, utf16le or utf16be; default: likewise, or utf8\n"
    "  --auto-vacuum MODE    none, full or incremental; default: likewise, or none\n"
    "  --wal                 SQLite is to use a write-ahead log on it\n"
    "  --quiet               no progress, no summary\n";

typedef struct ExportRun {
    const char *from, *to;
    bool quiet;
    TransferExport options;
    TransferCounts counts;
    Bar bar;
} ExportRun;

static void
on_progress(void *arg, const char *what, u64 done, u64 total)
{
    bar_show(&((ExportRun *)arg)->bar, what, done, total);
}

static bool
page_size_take(const char *text, u32 *bytes_out)
{
    u32 bytes = 0;
    for (; *text >= '0' && *text <= '9' && bytes < 100000; text++)
        bytes = bytes * 10 + (u32)(*text - '0');
    *bytes_out = bytes;
    return *text == 0 && bytes >= SQF_PAGE_BYTES_MIN && bytes <= SQF_PAGE_BYTES_MAX &&
           (bytes & (bytes - 1)) == 0;
}

/* One of `words`: its place; false: none. */
static bool
word_take(const char *text, const char *const *words, u32 *at_out)
{
    for (*at_out = 0; words[*at_out] != NULL; (*at_out)++) {
        if (strcmp(text, words[*at_out]) == 0) return true;
    }
    return false;
}

static bool
option_take(ExportRun *run, const char *name, const char *value, bool *used_out)
{
    static const char *const encodings[] = {"", "utf8", "utf16le", "utf16be", NULL};
    static const char *const vacuums[] = {"none", "full", "incremental", NULL};
    *used_out = true;
    if (strcmp(name, "--page-size") == 0)
        return value != NULL && page_size_take(value, &run->options.page_bytes);
    if (strcmp(name, "--encoding") == 0)
        return value != NULL && *value != 0 && word_take(value, encodings, &run->options.encoding);
    if (strcmp(name, "--auto-vacuum") == 0)
        return value != NULL && word_take(value, vacuums, &run->options.vacuum);
    *used_out = false;
    run->quiet |= strcmp(name, "--quiet") == 0;
    run->options.wal |= strcmp(name, "--wal") == 0;
    return strcmp(name, "--quiet") == 0 || strcmp(name, "--wal") == 0;
}

static bool
arguments_take(ExportRun *run, int argc, char **argv)
{
    run->options.vacuum = TRANSFER_AS_IMPORTED;
    for (int i = 0; i < argc; i++) {
        bool used = false;
        if (argv[i][0] == '-') {
            if (!option_take(run, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used)) return false;
            i += used;
        } else if (run->from == NULL) {
            run->from = argv[i];
        } else if (run->to == NULL) {
            run->to = argv[i];
        } else {
            return false;
        }
    }
    return run->to != NULL;
}

static Err
file_write(void *arg, u64 offset, const void *bytes, size_t count, ErrMsg *msg)
{
    return rt_file_write(arg, offset, bytes, count, msg);
}

static Err
fill(ExportRun *run, const Target *target, ErrMsg *msg)
{
    Session *session = NULL;
    RtFile *file = NULL;
    u64 bytes = 0;
    SessionOptions options = {.single_writer = true,
                              .read_only = true,
                              .level = STORE_SNAPSHOT,
                              .busy_timeout_ns = 5 * RT_NS_PER_S};
    run->options.progress = on_progress;
    run->options.arg = run;
    Err err = session_open(rt_process_default(), run->from, &options, &session, msg);
    if (err == OK)
        err = rt_file_open(NULL, target->part,
                           RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE | RT_FILE_TRUNCATE, &file,
                           msg);
    SqfTarget to = {.arg = file, .write = file_write};
    if (err == OK) err = transfer_export(session, &run->options, &to, &run->counts, &bytes, msg);
    bar_clear(&run->bar);
    if (err == OK) err = rt_file_truncate(file, bytes, msg);
    if (err == OK) err = rt_file_sync(file, msg);
    rt_file_close(file);
    session_destroy(session);
    return err;
}

int
tools_export(int argc, char **argv)
{
    ExportRun run = {0};
    Target target;
    ErrMsg msg = {0};
    u64 started_ns = rt_now_ns();
    if (!arguments_take(&run, argc, argv)) {
        complain("%s", usage);
        return 1;
    }
    run.bar = bar_make(run.quiet);
    interrupt_on();
    Err err = target_begin(&target, run.to, &msg);
    if (err == OK) err = fill(&run, &target, &msg);
    interrupt_off();
    if (err == OK) err = target_keep(&target, &msg);
    if (err != OK)
        complain("weft export: %s", err == ERR_INTERRUPT ? "interrupted" : err_message(&msg));
    target_end(&target);
    if (err == OK && !run.quiet) summary(run.to, &run.counts, started_ns);
    err_clear(&msg);
    return err == OK ? 0 : 1;
}
