/*
 * load.c -- Quack clients in one thread: statements a second, and how long each took.
 *
 *     load PORT read|insert|point|history|transfer CONNECTIONS DEPTH SECONDS
 *
 * Each connection keeps DEPTH requests under way (1: one a round trip).  Reads are of one row by
 * its key, inserts of one row in autocommit; point, history and transfer work on the ledger
 * (ledger.sql), a transfer as a script of one transaction; one that is refused as busy is rolled
 * back and counted apart.  Prints one JSON line.  Every answer is looked at: another error, or a
 * read without its row, ends the program.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 1024
#define INPUT_BYTES     65536
#define TIMES_MAX       4000000
#define KEYS            10000

typedef struct Client {
    int socket;
    unsigned under_way, rows;
    bool rolls_back;  /* Its transfer was refused: what comes now is ROLLBACK's answer. */
    uint64_t sent_ns; /* Of the last burst. */
    size_t got;
    char input[INPUT_BYTES];
} Client;

static Client *clients;
static uint64_t *times, time_count, answers, busy, next_key;
static enum Kind { READ, INSERT, POINT, HISTORY, TRANSFER, KINDS } kind;
static const char *const kind_names[KINDS] = {"read", "insert", "point", "history", "transfer"};

static void
fail(const char *what)
{
    fprintf(stderr, "load: %s\n", what);
    exit(1);
}

static uint64_t
now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void
send_all(Client *client, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t done = send(client->socket, bytes, count, MSG_NOSIGNAL);
        if (done <= 0) fail("cannot send");
        bytes += done;
        count -= (size_t)done;
    }
}

static int
request_write(char *to, size_t room, unsigned long long key)
{
    static const char *const sql[KINDS] = {
        [READ] = "SELECT v FROM b WHERE id = ?1",
        [INSERT] = "INSERT INTO w(v) VALUES(?1)",
        [POINT] = "SELECT debits - credits FROM account WHERE id = ?1",
        [HISTORY] = "SELECT * FROM (SELECT id, credit, amount FROM transfer WHERE debit = ?1"
                    " ORDER BY id DESC LIMIT 20) UNION ALL SELECT * FROM (SELECT id, debit, amount"
                    " FROM transfer WHERE credit = ?1 ORDER BY id DESC LIMIT 20)",
    };
    unsigned long long other = key * 31 % KEYS + 1, amount = key % 89 + 1;
    if (kind != TRANSFER)
        return snprintf(to, room, "{\"q\":\"%s\",\"params\":[%llu]}\n", sql[kind], key);
    return snprintf(to, room,
                    "{\"script\":\"BEGIN IMMEDIATE;"
                    "UPDATE account SET debits = debits + %llu WHERE id = %llu;"
                    "UPDATE account SET credits = credits + %llu WHERE id = %llu;"
                    "INSERT INTO transfer(debit, credit, amount) VALUES(%llu, %llu, %llu);"
                    "COMMIT\"}\n",
                    amount, key, amount, other, key, other, amount);
}

static void
burst(Client *client, unsigned count)
{
    char text[65536];
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t key = next_key++ * 7919 % KEYS + 1;
        bytes += (size_t)request_write(text + bytes, sizeof(text) - bytes, key);
        if (bytes + 500 > sizeof(text)) fail("the depth is too large");
    }
    client->under_way += count;
    client->sent_ns = now_ns();
    send_all(client, text, bytes);
}

/* A transfer that met another one, or the end of what follows from that. */
static bool
refused(Client *client, const char *line)
{
    static const char rollback[] = "{\"q\":\"ROLLBACK\"}\n";
    bool is_error = strncmp(line, "{\"err\":", 7) == 0;
    if (client->rolls_back) {
        /* An error too: the transaction had not begun. */
        if (!is_error && strncmp(line, "{\"done\":", 8) != 0) return true;
        client->rolls_back = false;
        client->under_way = 0;
        return true;
    }
    if (kind != TRANSFER || !is_error || strstr(line, "\"SQLITE_BUSY") == NULL) return false;
    busy++;
    client->rolls_back = true;
    send_all(client, rollback, sizeof(rollback) - 1);
    return true;
}

static void
line_take(Client *client, const char *line)
{
    if (refused(client, line)) return;
    if (strncmp(line, "{\"row\":", 7) == 0) client->rows++;
    if (strncmp(line, "{\"err\":", 7) == 0) fail(line);
    if (strncmp(line, "{\"done\":", 8) != 0) return;
    if ((kind == READ || kind == POINT) && client->rows != 1) fail("a row is missing");
    client->rows = 0;
    client->under_way--;
    answers++;
    if (client->under_way == 0 && time_count < TIMES_MAX)
        times[time_count++] = now_ns() - client->sent_ns;
}

static void
input_take(Client *client)
{
    ssize_t got = recv(client->socket, client->input + client->got, INPUT_BYTES - 1 - client->got,
                       0);
    if (got <= 0) fail("the server closed the connection");
    client->got += (size_t)got;
    client->input[client->got] = 0;
    char *line = client->input, *end;
    while ((end = strchr(line, '\n')) != NULL) {
        *end = 0;
        line_take(client, line);
        line = end + 1;
    }
    client->got -= (size_t)(line - client->input);
    memmove(client->input, line, client->got);
}

static void
client_open(Client *client, int port)
{
    int yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(client->socket, (struct sockaddr *)&address, sizeof(address)) != 0)
        fail("cannot connect");
    setsockopt(client->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

static int
by_time(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return one < other ? -1 : one > other;
}

int
main(int argc, char **argv)
{
    if (argc != 6) fail("load PORT read|insert CONNECTIONS DEPTH SECONDS");
    int port = atoi(argv[1]), count = atoi(argv[3]);
    unsigned depth = (unsigned)atoi(argv[4]);
    while (kind < KINDS && strcmp(argv[2], kind_names[kind]) != 0)
        kind++;
    if (kind == KINDS) fail("what to do?");
    static struct pollfd polls[CONNECTIONS_MAX];
    if (kind == TRANSFER && depth != 1) fail("transfers go one at a time");
    if (count < 1 || count > CONNECTIONS_MAX || depth < 1) fail("how many?");
    clients = calloc((size_t)count, sizeof(*clients));
    times = malloc(TIMES_MAX * sizeof(*times));
    if (clients == NULL || times == NULL) fail("out of memory");
    uint64_t started = now_ns(), end = started + (uint64_t)(atof(argv[5]) * 1e9);
    for (int i = 0; i < count; i++) {
        client_open(&clients[i], port);
        polls[i] = (struct pollfd){.fd = clients[i].socket, .events = POLLIN};
        burst(&clients[i], depth);
    }
    while (now_ns() < end) {
        if (poll(polls, (nfds_t)count, 1000) < 0) fail("poll");
        for (int i = 0; i < count; i++) {
            if (polls[i].revents == 0) continue;
            input_take(&clients[i]);
            if (clients[i].under_way == 0) burst(&clients[i], depth);
        }
    }
    double seconds = (double)(now_ns() - started) / 1e9;
    qsort(times, time_count, sizeof(*times), by_time);
    if (time_count == 0) fail("nothing was answered");
    printf("{\"per_second\": %.0f, \"answers\": %llu, \"busy\": %llu, \"p50_us\": %.1f, "
           "\"p99_us\": %.1f, \"longest_us\": %.1f}\n",
           (double)answers / seconds, (unsigned long long)answers, (unsigned long long)busy,
           (double)times[time_count / 2] / 1e3, (double)times[time_count * 99 / 100] / 1e3,
           (double)times[time_count - 1] / 1e3);
    return 0;
}
