/* SPDX-License-Identifier: BSD-3-Clause
 * Keeps every loaded library until the end, so that a leak found then still
 * has the name of the library that it is in.
 */
int dlclose(void *handle);

int dlclose(void *handle)
{
    (void)handle;
    return 0;
}
