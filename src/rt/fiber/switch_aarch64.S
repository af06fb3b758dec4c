/*
 * switch_aarch64.S -- change stacks.  Saved: x19-x30, d8-d15, sp.  FPCR is never changed by our
 * code.
 */
#if defined(__aarch64__)
        .text
        .p2align 4
        .globl  rt__switch
        .hidden rt__switch
        .type   rt__switch, %function
/* void rt__switch(void **save_sp, void *to_sp) */
rt__switch:
        .cfi_startproc
        hint    #34 /* bti c */
        sub     sp, sp, #160
        .cfi_adjust_cfa_offset 160
        stp     x19, x20, [sp, #0]
        stp     x21, x22, [sp, #16]
        stp     x23, x24, [sp, #32]
        stp     x25, x26, [sp, #48]
        stp     x27, x28, [sp, #64]
        stp     x29, x30, [sp, #80]
        .cfi_rel_offset x19, 0
        .cfi_rel_offset x20, 8
        .cfi_rel_offset x21, 16
        .cfi_rel_offset x22, 24
        .cfi_rel_offset x23, 32
        .cfi_rel_offset x24, 40
        .cfi_rel_offset x25, 48
        .cfi_rel_offset x26, 56
        .cfi_rel_offset x27, 64
        .cfi_rel_offset x28, 72
        .cfi_rel_offset x29, 80
        .cfi_rel_offset x30, 88
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mov     x9, sp
        str     x9, [x0]
        /* The other stack has the same shape, so the unwind rules go on holding. */
        mov     sp, x1
        ldp     x19, x20, [sp, #0]
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     x29, x30, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        add     sp, sp, #160
        .cfi_adjust_cfa_offset -160
        .cfi_restore x19
        .cfi_restore x20
        .cfi_restore x21
        .cfi_restore x22
        .cfi_restore x23
        .cfi_restore x24
        .cfi_restore x25
        .cfi_restore x26
        .cfi_restore x27
        .cfi_restore x28
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .size   rt__switch, . - rt__switch

        .p2align 4
        .globl  rt__switch_entry
        .hidden rt__switch_entry
        .type   rt__switch_entry, %function
/* Where a new fiber begins: x19 is the argument, x20 the function, which never returns. */
rt__switch_entry:
        .cfi_startproc
        .cfi_undefined x30
        hint    #34 /* bti c */
        mov     x29, xzr
        mov     x0, x19
        blr     x20
        brk     #1
        .cfi_endproc
        .size   rt__switch_entry, . - rt__switch_entry
#endif
/* Also where this file is empty: no executable stack. */
        .section .note.GNU-stack, "", %progbits
