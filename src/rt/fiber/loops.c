#include "rt/fiber/loops.h"

void
rt__loops_close(RtProcess *process)
{
    (void)process;
}
