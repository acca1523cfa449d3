/* SPDX-License-Identifier: BSD-3-Clause
 * Descriptions of one node in XML: hwloc's (lstopo) and NCCL's.
 */
#ifndef MF_CLUSTER_XML_H
#define MF_CLUSTER_XML_H

#include "planner/cluster_facts.h"
#include "planner/text_file.h"

/* The cluster of the one node that TEXT, read from PATH, describes. Parsed by
 * libxml2 in a child process under limits of time and memory, without network,
 * entities or external files. MF_INVALID, naming file and place.
 */
int mf_xml_cluster(const char *path, const struct mf_text *text,
    struct mf_cluster *cluster, struct mf_error *err);

/* The same in this process: what the child runs, and what is fuzzed. */
int mf_xml_read(const char *path, const char *data, size_t length,
    struct mf_cluster *cluster, struct mf_error *err);

#ifdef HAVE_LIBXML2
#include <libxml/tree.h>

/* An attribute as a number of BASE; FALLBACK where it is not there or none. */
double mf_xml_number(xmlNodePtr node, const char *name, double fallback);
long mf_xml_integer(xmlNodePtr node, const char *name, int base, long fallback);
/* Copy an attribute, cut to SIZE; empty where it is not there. */
void mf_xml_text(xmlNodePtr node, const char *name, char *text, size_t size);
bool mf_xml_is(xmlNodePtr node, const char *name);
/* The next element of the tree under ROOT, in the order of the file. */
xmlNodePtr mf_xml_next(xmlNodePtr root, xmlNodePtr node);

/* Facts from the root element of a file. */
int mf_nccl_facts(xmlNodePtr root, struct mf_facts *facts,
    struct mf_cluster *notes, struct mf_error *err);
int mf_hwloc_facts(xmlNodePtr root, struct mf_facts *facts,
    struct mf_cluster *notes, struct mf_error *err);
#endif

#endif
