/* Placeholder until the log lands with the next change: no store has a log yet. */
#include "store/wal/wal.h"
Err
wal_reserve(Wal *wal, u32 bytes)
{
    (void)wal;
    (void)bytes;
    UNREACHABLE();
}
void
wal_take(Wal *wal, u32 bytes, WalPlace *place_out)
{
    (void)wal;
    (void)bytes;
    (void)place_out;
    UNREACHABLE();
}
void
wal_filled(Wal *wal, const WalPlace *place)
{
    (void)wal;
    (void)place;
    UNREACHABLE();
}
void
wal_chunks_begin(Wal *wal, WalChunks *chunks)
{
    (void)wal;
    (void)chunks;
    UNREACHABLE();
}
void
wal_chunks_end(Wal *wal, WalChunks *chunks)
{
    (void)wal;
    (void)chunks;
    UNREACHABLE();
}
Err
wal_flush(Wal *wal, u64 lsn, bool sync)
{
    (void)wal;
    (void)lsn;
    (void)sync;
    UNREACHABLE();
}
u64
wal_durable(const Wal *wal)
{
    (void)wal;
    UNREACHABLE();
}
bool
wal_is_failed(const Wal *wal)
{
    (void)wal;
    UNREACHABLE();
}
const char *
wal_failure_text(const Wal *wal, Err err)
{
    (void)wal;
    return err_text(err);
}
void
wal_close(Wal *wal)
{
    (void)wal;
}
void
wal_stats(const Wal *wal, WalStats *stats_out)
{
    (void)wal;
    (void)stats_out;
    UNREACHABLE();
}
