/*
 * io_script.c -- see io_script.h.
 */
#include "io_script.h"

#include <stdio.h>
#include <unistd.h>

#include "rt/file.h"
#include "rt/net.h"
#include "rt/time.h"
#include "unit/cmocka_all.h"

static Err
count_name(void *arg, const char *name)
{
    u32 *count = arg;
    (*count)++;
    return strcmp(name, "stop") == 0 ? ERR_ABORT : OK;
}

#define TRY(call)                 \
    do {                          \
        err = (call);             \
        if (err != OK) goto done; \
    } while (0)

/* Every kind of call once; the first error ends it. */
Err
io_script_files(const char *test_dir, ErrMsg *msg)
{
    Err err = OK;
    RtDir *dir = NULL;
    RtFile *file = NULL, *temp = NULL;
    char sub[128];
    u8 data[5000], back[5000];
    u64 size;
    RtStat stat;
    size_t got;
    u32 names = 0;
    RtFileId id;
    char *real = NULL;

    snprintf(sub, sizeof(sub), "%s/sub", test_dir);
    for (u32 i = 0; i < sizeof(data); i++)
        data[i] = (u8)(i * 7);
    TRY(rt_dir_create(sub, msg));
    TRY(rt_dir_open(sub, &dir, msg));
    TRY(rt_file_open(dir, "a", RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE | RT_FILE_EXCLUSIVE,
                     &file, msg));
    TRY(rt_file_own(file, true, NULL, msg));
    TRY(rt_file_preallocate(file, 0, 8192, msg));
    TRY(rt_file_write(file, 100, data, sizeof(data), msg));
    RtIoVec vecs[3] = {{data, 10}, {data + 10, 0}, {data + 10, 3000}};
    TRY(rt_file_writev(file, 8192, vecs, 3, msg));
    TRY(rt_file_sync(file, msg));
    TRY(rt_dir_sync(dir, msg));
    TRY(rt_file_read_exact(file, 100, back, sizeof(back), msg));
    assert_memory_equal(data, back, sizeof(data));
    RtIoVec in[2] = {{back, 1000}, {back + 1000, 2010}};
    TRY(rt_file_readv(file, 8192, in, 2, msg));
    assert_memory_equal(data, back, 3010);
    TRY(rt_file_size(file, &size, msg));
    assert_int_equal(size, 8192 + 3010);
    TRY(rt_file_read(file, size - 5, back, 100, &got, msg));
    assert_int_equal(got, 5);
    TRY(rt_file_truncate(file, 4096, msg));
    TRY(rt_file_id(file, &id, msg));
    TRY(rt_file_rename(dir, "a", "b", msg));
    TRY(rt_file_stat(dir, "b", &stat, msg));
    assert_int_equal(stat.size_bytes, 4096);
    assert_true(stat.is_file && stat.id.inode == id.inode);
    TRY(rt_dir_list(dir, count_name, &names, msg));
    assert_int_equal(names, 1);
    TRY(rt_path_real(sub, &real, msg));
    TRY(rt_file_open_temp(dir, &temp, msg));
    TRY(rt_file_write(temp, 0, data, 100, msg));
    TRY(rt_file_read_next(temp, back, 100, &got, msg));

done:
    mem_free(real);
    rt_file_close(temp);
    rt_file_close(file);
    rt_dir_close(dir);
    return err;
}

void
io_script_clean(const char *test_dir)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/sub/a", test_dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/sub/b", test_dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/sub", test_dir);
    rmdir(path);
}

/* Connect, accept, write, read; closes all. */
Err
io_script_sockets(void)
{
    RtListener *listener = NULL;
    RtSocket *client = NULL, *server = NULL;
    u8 bytes[100] = {0};
    size_t total = 0, got = 0;
    u64 deadline = rt_deadline_after(2 * RT_NS_PER_S);
    Err err = rt_listen("127.0.0.1:0", 0, &listener, NULL);
    if (err != OK) goto done;
    err = rt_connect(rt_listener_address(listener), deadline, &client, NULL);
    if (err != OK) goto done;
    err = rt_accept(listener, deadline, &server, NULL);
    if (err != OK) goto done;
    err = rt_socket_write(client, bytes, sizeof(bytes), deadline, NULL);
    while (err == OK && total < sizeof(bytes)) {
        err = rt_socket_read(server, bytes, sizeof(bytes), deadline, &got, NULL);
        total += got;
    }
done:
    rt_socket_close(client);
    rt_socket_close(server);
    rt_listener_close(listener);
    return err;
}
