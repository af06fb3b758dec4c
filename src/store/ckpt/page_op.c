/*
 * page_op.c -- entering and draining page operations.
 */
#include "store/ckpt/page_op.h"

#include "rt/task.h"

void
page_op__enter(PageOps *ops, PageOp *op)
{
    /* Operations of different tasks have their stacks apart. */
    u32 lane = (u32)(((uintptr_t)op >> 12) * 0x9e3779b97f4a7c15u >> 40);
    u64 epoch = rt_load_relaxed(&ops->epoch);
    u32 rounds = 0;
    for (u32 tries = 1;; tries++) {
        u64 nobody = 0;
        lane %= PAGE_OP_LANES;
        if (rt_cas(&ops->lanes[lane].epoch, &nobody, epoch)) break;
        lane++;
        if (tries % PAGE_OP_LANES == 0) rt_spin(&rounds);
    }
    /* Published; if the cut came meanwhile, it may have looked too early. */
    for (u64 now = rt_load(&ops->epoch); now != epoch && !PLANT(156); now = rt_load(&ops->epoch)) {
        epoch = now;
        rt_store(&ops->lanes[lane].epoch, epoch);
    }
    op->lane = lane;
    op->epoch = epoch;
}

u64
page_ops_cut(PageOps *ops)
{
    u64 cut = rt_load_relaxed(&ops->epoch);
    ASSERT(rt_load_relaxed(&ops->cut) == 0);
    rt_store(&ops->cut, cut);
    rt_store(&ops->epoch, cut + 1);
    return cut;
}

void
page_ops_drain(PageOps *ops, u64 cut)
{
    for (u32 i = 0; i < PAGE_OP_LANES; i++) {
        u32 rounds = 0;
        for (;;) {
            u64 epoch = rt_load(&ops->lanes[i].epoch);
            if (epoch == 0 || epoch > cut) break;
            rt_spin(&rounds);
        }
    }
}

void
page_ops_uncut(PageOps *ops)
{
    rt_store(&ops->cut, 0);
}
