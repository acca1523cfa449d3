/* SPDX-License-Identifier: BSD-3-Clause
 * moefold: plans, launches, runs and remembers folded MoE layouts.
 */
#include <stddef.h>

int main(void)
{
    return 2;
}
