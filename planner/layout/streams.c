/* SPDX-License-Identifier: BSD-3-Clause
 * Standard streams, for the start and the end of a program.
 */
#include "planner/layout/streams.h"

#include <fcntl.h>
#include <stdio.h>

int mf_streams_open(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return -1;
    return 0;
}

int mf_streams_flush(void)
{
    int failed = fflush(stdout);

    return failed || ferror(stdout) ? -1 : 0;
}
