/*
 * import.c -- weft import: a SQLite file becomes a Weft database.
 */
#include "rt/console.h"
#include "rt/process.h"
#include "rt/time.h"
#include "tools/target.h"
#include "tools/tools.h"
#include "transfer/transfer.h"

#define FINDINGS_SHOWN 20u

static const char usage[] =
    "usage: weft import [--salvage] [--skip-virtual] [--quiet] APP.db APP.weft\n"
    "\n"
    "Makes the Weft database APP.weft from the SQLite database APP.db, which is only read (with "
    "its\n"
    "APP.db-wal or APP.db-journal, if there is one).\n"
    "\n"
    "  --salvage       take what can be read of a damaged file, and say what is missing (status "
    "2)\n"
    "  --skip-virtual  leave virtual tables out\n"
    "  --quiet         no progress, no summary\n";

typedef struct ImportRun {
    const char *from, *to;
    bool quiet, salvage, skip_virtual;
    Bar bar;
    u64 findings;
    TransferCounts counts;
} ImportRun;

static void
on_finding(void *arg, const char *text)
{
    ImportRun *run = arg;
    bar_clear(&run->bar);
    if (run->findings++ < FINDINGS_SHOWN) complain("%s: %s", run->from, text);
}

static void
on_progress(void *arg, const char *what, u64 done, u64 total)
{
    bar_show(&((ImportRun *)arg)->bar, what, done, total);
}

/* False: wrong. */
static bool
arguments_take(ImportRun *run, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--salvage") == 0)
            run->salvage = true;
        else if (strcmp(argv[i], "--skip-virtual") == 0)
            run->skip_virtual = true;
        else if (strcmp(argv[i], "--quiet") == 0)
            run->quiet = true;
        else if (argv[i][0] == '-')
            return false;
        else if (run->from == NULL)
            run->from = argv[i];
        else if (run->to == NULL)
            run->to = argv[i];
        else
            return false;
    }
    return run->to != NULL;
}

/* Fill the database under the temporary name, and close it: only then is it one whole file. */
static Err
fill(ImportRun *run, const Target *target, ErrMsg *msg)
{
    Sqf *sqf = NULL;
    Session *session = NULL;
    TransferImport import = {.salvage = run->salvage,
                             .skip_virtual = run->skip_virtual,
                             .progress = on_progress,
                             .note = on_finding,
                             .arg = run};
    SessionOptions options = {.create = true,
                              .single_writer = true,
                              .sync = STORE_SYNC_OFF,
                              .level = STORE_SNAPSHOT,
                              .busy_timeout_ns = 5 * RT_NS_PER_S};
    Err err = sqf_open_file(run->from, run->salvage, on_finding, run, &sqf, msg);
    if (err == OK) err = session_open(rt_process_default(), target->part, &options, &session, msg);
    if (err == OK) err = transfer_import(sqf, session, &import, &run->counts, msg);
    bar_clear(&run->bar);
    sqf_close(sqf);
    session_destroy(session);
    return err;
}

static int
failed(const ImportRun *run, Err err, const ErrMsg *msg)
{
    complain("weft import: %s", err == ERR_INTERRUPT ? "interrupted" : err_message(msg));
    bool damage = err == ERR_CORRUPT && strncmp(err_message(msg), "malformed", 9) != 0;
    if (err == ERR_CORRUPT && !damage && !run->salvage)
        complain("to leave out what cannot be taken over run: weft import --salvage %s %s",
                 run->from, run->to);
    if (damage && !run->salvage) {
        complain("%llu rows could be read before; to take what can be read run: "
                 "weft import --salvage %s %s",
                 (unsigned long long)run->counts.rows, run->from, run->to);
    }
    return 1;
}

int
tools_import(int argc, char **argv)
{
    ImportRun run = {0};
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
    int status = err == OK ? 0 : failed(&run, err, &msg);
    target_end(&target);
    err_clear(&msg);
    if (status != 0) return status;
    if (!run.quiet) summary(run.to, &run.counts, started_ns);
    if (run.findings > FINDINGS_SHOWN)
        complain("%s: %llu more findings like these", run.from,
                 (unsigned long long)(run.findings - FINDINGS_SHOWN));
    if (run.counts.rows_lost > 0)
        complain("%s: %llu rows could not be used", run.from,
                 (unsigned long long)run.counts.rows_lost);
    bool whole = run.findings == 0 && run.counts.rows_lost == 0 && run.counts.left_out == 0;
    return run.salvage && !whole ? 2 : 0;
}
