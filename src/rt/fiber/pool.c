#include "rt/fiber/pool.h"

#include "rt/process_impl.h"

bool
rt__pool_takes(RtIoOp op)
{
    (void)op;
    return false;
}

void
rt__pool_run(RtProcess *process, RtIo *io)
{
    process->sys->io(process, io);
}
