/*
 * switch_x86_64.S -- change stacks.  Saved: rbx rbp r12-r15 rsp.  MXCSR and the x87 word are never
 * changed by our code, so they are the same on all fibers of a thread.
 */
#if defined(__x86_64__)
        .text
        .p2align 4
        .globl  rt__switch
        .hidden rt__switch
        .type   rt__switch, @function
/* void rt__switch(void **save_sp, void *to_sp) */
rt__switch:
        .cfi_startproc
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r15, 0
        movq    %rsp, (%rdi)
        /* The other stack has the same shape, so the unwind rules go on holding. */
        movq    %rsi, %rsp
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        /* Not ret: its prediction belongs to the stack that was left. */
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        .cfi_register %rip, %rcx
        jmpq    *%rcx
        .cfi_endproc
        .size   rt__switch, . - rt__switch

        .p2align 4
        .globl  rt__switch_entry
        .hidden rt__switch_entry
        .type   rt__switch_entry, @function
/* Where a new fiber begins: r12 is the argument, r13 the function, which never returns. */
rt__switch_entry:
        .cfi_startproc
        .cfi_undefined %rip
        xorl    %ebp, %ebp
        movq    %r12, %rdi
        callq   *%r13
        ud2
        .cfi_endproc
        .size   rt__switch_entry, . - rt__switch_entry
#endif
/* Also where this file is empty: no executable stack. */
        .section .note.GNU-stack, "", %progbits
