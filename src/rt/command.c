/*
 * command.c -- see command.h.
 */
#include "rt/command.h"

#include <errno.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt/io.h"
#include "rt/process_impl.h"

extern char **environ;

static int
spawn(const char *command, RtFile *input, RtFile *output, pid_t *pid_out)
{
    char sh[] = "sh", dash_c[] = "-c";
    char *copy = mem_strdup(command);
    char *const argument[] = {sh, dash_c, copy, NULL};
    posix_spawn_file_actions_t actions;
    if (copy == NULL) return ENOMEM;
    int error = posix_spawn_file_actions_init(&actions);
    if (error == 0 && input != NULL) {
        (void)lseek(rt__file_fd(input), 0, SEEK_SET);
        error = posix_spawn_file_actions_adddup2(&actions, rt__file_fd(input), STDIN_FILENO);
    }
    if (error == 0 && output != NULL)
        error = posix_spawn_file_actions_adddup2(&actions, rt__file_fd(output), STDOUT_FILENO);
    if (error == 0) error = posix_spawn(pid_out, "/bin/sh", &actions, NULL, argument, environ);
    posix_spawn_file_actions_destroy(&actions);
    mem_free(copy);
    return error;
}

Err
rt_command_run(const char *command, RtFile *input, RtFile *output, int *status_out, ErrMsg *msg)
{
    pid_t pid = 0;
    int status = 0;
    *status_out = -1;
    int error = spawn(command, input, output, &pid);
    while (error == 0 && waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) error = errno;
    }
    if (error != 0) {
        return err_set(msg, rt__errno_err(error, ERR_IO), "cannot run \"%s\": %s", command,
                       rt__errno_text(error));
    }
    *status_out = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return OK;
}

Err
rt_file_rewind(RtFile *file)
{
    return lseek(rt__file_fd(file), 0, SEEK_SET) == 0 ? OK : rt__errno_err(errno, ERR_IO);
}

Err
rt_change_dir(const char *path)
{
    return chdir(path) == 0 ? OK : rt__errno_err(errno, ERR_IO);
}

static u64
microseconds(struct timeval time)
{
    return (u64)time.tv_sec * 1000000 + (u64)time.tv_usec;
}

void
rt_cpu_times(u64 *user_us_out, u64 *system_us_out)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    *user_us_out = microseconds(usage.ru_utime);
    *system_us_out = microseconds(usage.ru_stime);
}
