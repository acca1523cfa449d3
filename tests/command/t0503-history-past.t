#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # functions are called by check
# history: compare, regress, export and import, prune, check, report.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

run_name() { printf '%08d-0000-4000-8000-000000000000' "$1"; }

head=run_id,started_unix_s,status,model,cluster,layout,rank_order,coupled
head=$head,ranks,nodes,node_list,gated,layer_s,tokens_per_s,predicted_s
head=$head,user_name,version
csv_run() { # NUMBER STARTED NODES LAYER_S [MODEL [USER [VERSION]]]
    printf '%s,%s,done,%s,c1,tp1.cp1.dp4.pp1/etp1.ep4.edp1,tp-cp-ep-dp-pp,0,' \
        "$(run_name "$1")" "$2" "${5:-m1}"
    printf '4,2,"%s",1,%s,%s,0.1,%s,%s\n' "$3" "$4" \
        "$(awk "BEGIN { print 4096 / $4 }")" "${6:-ada}" "${7:-1.0}"
}

# Ten iterations: dispatch takes DISPATCH ms and experts EXPERTS ms, give or
# take, on the slowest rank, which is RANK.
csv_samples() { # NUMBER DISPATCH EXPERTS RANK
    awk -v id="$(run_name "$1")" -v d="$2" -v e="$3" -v r="$4" 'BEGIN {
        for (i = 0; i < 10; i++) {
            wobble = 1 + 0.002 * ((i * 7) % 10 - 4.5)
            printf "%s,%d,%d,dispatch,forward,%.9g,%.9g,%d\n", id, 2 * i, i,
                0.018, d * wobble / 1000, r
            printf "%s,%d,%d,experts,forward,%.9g,%.9g,%d\n", id, 2 * i + 1, i,
                0.078, e * wobble / 1000, r
        } }'
}

{
    echo "$head"
    csv_run 1 1000 n1,n2 0.100
    csv_run 2 2000 n1,n2 0.101
    csv_run 3 3000 n1,n2 0.099
    csv_run 4 4000 n1,n3 0.130
    csv_run 5 5000 n1,n2 0.1002
    csv_run 6 6000 n1,n2 0.100 m2 '"eve, ""the admin"""' 2.0
} >runs.csv
{
    echo run_id,sequence,iteration,phase,direction,median_s,max_s,slowest_rank
    for n in 1 2 3 5 6; do csv_samples "$n" 20 80 0; done
    csv_samples 4 20 110 3
} >samples.csv

# --- import of CSV ---
expect 'runs as CSV' 0 moefold history import runs.csv --json
expect_json 'six runs' '.runs == 6 and .samples == 0'
expect 'their samples' 0 moefold history import samples.csv --json
expect_json 'twenty each' '.samples == 120'
expect 'the same again' 0 moefold history import samples.csv
expect 'list' 0 moefold history list --json
expect_json 'every run is there once' '.runs | length == 6'
expect 'the quotes are undone' 0 \
    moefold history list --user 'eve, "the admin"' --json
expect_json 'by its user' '[.runs[].run_id[0:8]] == ["00000006"]'
expect 'show' 0 moefold history show 00000004 --json
expect_json 'ten samples of each phase' \
    '[.runs[0].phases[] | .samples] == [10, 10]'

sed 's/,done,/,gone,/' runs.csv >bad.csv
expect 'a status that is none' 2 moefold history import bad.csv
expect_error 'is named with its line' "bad.csv: line 2: .*status.*'gone'"
sed 's/layer_s/layer_z/' runs.csv >bad.csv
expect 'a column that is none' 2 moefold history import bad.csv
expect_error 'is named' "column 'layer_z'"
sed '4s/$/,1/' runs.csv >bad.csv
expect 'a cell too many' 2 moefold history import bad.csv
expect_error 'is named with its line' 'line 4: 18 cells'
printf 'run_id,"status\n' >bad.csv
expect 'a quote without its end' 2 moefold history import bad.csv
printf 'run_id,sequence,iteration,phase,direction\n%s,0,0,route,forward\n' \
    "$(run_name 99)" >bad.csv
expect 'a sample without its run' 2 moefold history import bad.csv
expect_error 'names the run' "no run '00000099"
{
    echo "$head"
    csv_run 7 7000 n1 0.1
    echo broken
} >bad.csv
expect 'a bad last line' 2 moefold history import bad.csv
expect 'list' 0 moefold history list --json
expect_json 'takes the lines before it back' '.runs | length == 6'

expect 'drawn' 0 moefold history show 00000004 --plot
# 110 ms is the longest: 40 cells; 20 ms are 7 and a quarter.
expect_line 'the longest phase' '^experts +forward +[0-9.]+ ms █{40}$'
expect_line 'a fifth of it' '^dispatch +forward +[0-9.]+ ms █{7}▎$'

# --- filters ---
expect 'of a node' 0 moefold history list --node n3 --json
expect_json 'one run' '[.runs[].run_id[0:8]] == ["00000004"]'
expect 'of a node whose name begins so' 0 moefold history list --node n --json
expect_json 'none' '.runs == []'
expect 'of a version' 0 moefold history list --of-version 2.0 --json
expect_json 'one run' '[.runs[].run_id[0:8]] == ["00000006"]'
expect 'since a time' 0 \
    moefold history list --since 1970-01-01T01:23:20Z --json
expect_json 'that one and later ones' \
    '[.runs[].run_id[0:8]] == ["00000006", "00000005"]'
expect 'since a day ago' 0 moefold history list --since 1d --json
expect_json 'none' '.runs == []'
for time in yesterday 2026-02-30 12 1w 2026-12-01T25:00:00Z; do
    expect "$time is no time" 2 moefold history list --since "$time"
    expect_error 'says how to write one' '90d, 12h'
done

# --- best ---
expect 'best' 0 moefold history best --model m1 --json
# Five runs: 99, 100, 100.2, 101, 130 ms; the one in the middle.
expect_json 'the median run, and what stands behind it' '.runs[0] |
    .run_id[0:8] == "00000005" and .runs == 5 and
    (.layer_ms_low - 99 | fabs < 1e-9) and
    (.layer_ms_high - 130 | fabs < 1e-9)'

# --- compare ---
expect 'compare' 0 moefold history compare 00000001 00000004 --json
expect_json 'the layer is slower: 130 to 100 ms' '.layer |
    .verdict == "slower" and (.ratio - 1.3 | fabs < 1e-6) and .significant
    and .a_samples == 10'
# All of one side above all of the other: 2 of the C(20, 10) = 184756 ways.
expect_json 'by chance in 2 of 184756' \
    '.layer.p - 2 / 184756 | fabs < 1e-12'
expect_json 'the experts are' '.phases[] | select(.phase == "experts") |
    .verdict == "slower" and (.ratio - 1.375 | fabs < 1e-6)'
expect_json 'the exchange is as it was' '.phases[] |
    select(.phase == "dispatch") | .verdict == "same" and .p > 0.5'
expect 'for people' 0 moefold history compare 00000004 00000001
expect_line 'the other way round' '^experts +forward .*faster$'
expect 'with itself' 0 moefold history compare 00000001 00000001 --json
expect_json 'nothing differs' '[.layer, .phases[]] | all(.verdict == "same")'
expect 'one run alone' 2 moefold history compare 00000001
expect 'a run that is not there' 2 moefold history compare 00000001 9

# --- regress ---
expect 'regress' 0 moefold history regress --json
expect_json 'one run of two that can be judged is slow' '.judged == 2 and
    [.runs[].run_id[0:8]] == ["00000004"] and .unjudged == 4'
expect_json 'against the median of three' '.runs[0] | .earlier_runs == 3 and
    (.expected_ms - 100 | fabs < 1e-9) and (.ratio - 1.3 | fabs < 1e-9)'
expect_json 'because of the experts' '.runs[0].phases[0] |
    .phase == "experts" and (.ratio > 1.3)'
expect_json 'and the node that all waited for is sick, and only it' \
    '[.nodes[] | select(.sick) | .node] == ["n3"]'
expect_json 'all of the waiting' '.nodes[0].waited_for == 1'
expect 'for people' 0 moefold history regress
expect_line 'the node is named' '^node n3: 1 of its 1 runs slow'
expect_line 'the sum' '^1 of 2 runs slower'
expect 'a threshold above it' 0 moefold history regress --threshold 0.5 --json
expect_json 'none' '.runs == [] and ([.nodes[] | select(.sick)] == [])'

# --- export, and import of it ---
moefold history export >all.json
check 'the export is JSON with the keys of list' jq -e '(.runs | length == 6)
    and (.runs[0] | has("run_id", "layer_ms", "predicted_ms", "status"))' \
    all.json
moefold history export --csv >all.csv
moefold history export --csv --samples >all-samples.csv
again() { # NAME FILE...: into a new history, and out again
    local name=$1 db
    shift
    db=$T/$name.db
    for file; do
        moefold history import "$file" --db "$db" >/dev/null || return 1
    done
    moefold history export --db "$db" | cmp - all.json &&
        moefold history export --csv --samples --db "$db" |
        cmp - all-samples.csv
}
check 'JSON comes back bit for bit' again json all.json
check 'CSV too' again csv all.csv all-samples.csv
expect 'an export of a part' 0 moefold history export --model m2 --json
expect_json 'one run with its samples' '(.runs | length == 1) and
    (.runs[0].samples | length == 20)'
echo '{"runs": [{"columns": {"run_id": 3}}]}' >bad.json
expect 'JSON of the wrong type' 2 moefold history import bad.json
expect_error 'names the place' 'bad.json: run 0: run_id'
echo '{"runs": ' >bad.json
expect 'cut JSON' 2 moefold history import bad.json

# --- prune ---
expect 'prune without a time' 2 moefold history prune
expect 'what would go' 0 \
    moefold history prune --older-than 1970-01-02 --dry-run --json
# Of m1 the fastest (3) and the newest (5) stay; m2 has one run.
expect_json 'all but the fastest and the newest of each kind' '.dry_run and
    ([.runs[].run_id[0:8]] | sort) == ["00000001", "00000002", "00000004"]'
expect 'list' 0 moefold history list --json
expect_json 'nothing went' '.runs | length == 6'
expect 'only old ones' 0 moefold history prune --older-than \
    1970-01-01T00:30:00Z --json
expect_json 'one' '[.runs[].run_id[0:8]] == ["00000001"]'
expect 'keep the last three' 0 moefold history prune --older-than 1d \
    --keep-last 3 --json
expect_json 'and the best' '[.runs[].run_id[0:8]] == ["00000002"]'
expect 'prune' 0 moefold history prune --older-than 1d
expect_line 'one more' '^runs removed: 1$'
check 'their samples went with them' test "$(sqlite3 "$MOEFOLD_DB" \
    'SELECT count(*), count(DISTINCT run) FROM sample')" = '60|3'

# --- check ---
expect 'check' 0 moefold history check --json
expect_json 'all is well' '.ok and .problems == []'
sqlite3 "$MOEFOLD_DB" "PRAGMA foreign_keys = 0;
    INSERT INTO sample (run, sequence, iteration, phase, direction)
    VALUES (99, 0, 0, 'route', 'forward');"
expect 'a sample without a run' 3 moefold history check --json
expect_json 'is told' '(.ok | not) and (.problems | length == 1)'
expect 'of no history' 2 moefold history check --db nothing.db

# --- a history of the first schema ---
cp "$SRC/tests/data/db/schema-1.db" old.db && chmod u+w old.db
expect 'an old history' 0 moefold history list --db old.db --json
expect_json 'has its run' '.runs[0] | .run_id[0:8] == "aaaaaaaa" and
    .layer_ms == 100 and .node_list == ["n1", "n2"]'
schema() {
    sqlite3 "$1" 'SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2'
}
same_schema() { cmp <(schema old.db) <(schema "$MOEFOLD_DB"); }
check 'is brought to the schema of a new one' same_schema
expect 'and sound' 0 moefold history check --db old.db
cp "$SRC/tests/data/db/schema-1.db" old.db && chmod a-w old.db
if [ "$(id -u)" -eq 0 ]; then
    skip 'an old one that cannot be written' 'root writes anything'
else
    expect 'an old one that cannot be written' 2 \
        moefold history list --db old.db
fi

# --- report ---
{
    echo "$head"
    csv_run 8 8000 '<b>n1</b>' 0.1 \
        '"<script>alert(1)</script>& ""m"" '"'"'x'"'"'"'
} >hostile.csv
expect 'a hostile name' 0 moefold history import hostile.csv
expect 'a report' 0 moefold history report --html page.html --json
expect_json 'of four runs' '.runs == 4'
check 'is well-formed but for what HTML leaves open' python3 - <<'PY'
import html.parser, sys
class Page(html.parser.HTMLParser):
    void = {"meta", "circle", "rect", "path", "br"}
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], [], ""
    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag
    def handle_data(self, data):
        self.text += data
page = Page()
page.feed(open("page.html", encoding="utf-8").read())
assert not page.open, page.open
tags = {tag for tag, _ in page.seen}
assert not tags & {"script", "b", "link", "img", "iframe"}, tags
assert "<script>alert(1)</script>& \"m\" 'x'" in page.text
for tag, attrs in page.seen:
    assert not any(k.startswith("on") for k in attrs), attrs
    assert not {"src", "srcset"} & attrs.keys()
    assert attrs.get("href", "#").startswith("#"), attrs
links = {a["href"][1:] for t, a in page.seen if t == "a"}
ids = [a["id"] for _, a in page.seen if "id" in a]
assert links <= set(ids) and len(ids) == len(set(ids)), (links, ids)
assert sum(t == "svg" for t in (t for t, _ in page.seen)) >= 4
assert "NaN" not in page.text and "inf" not in page.text
PY
expect 'a report without a file' 2 moefold history report
expect 'a report into no folder' 1 moefold history report --html no/page.html

# --- nccl-tests ---
cp "$SRC/tests/data/nccl-tests/all-reduce.txt" allreduce.txt
expect 'nccl-tests without a cluster' 2 moefold history import allreduce.txt
expect_error 'asks for one' 'cluster'
expect 'nccl-tests' 0 moefold history import allreduce.txt \
    --cluster dgx-h100:2 --json
expect_json 'its best out-of-place rate above 1 MB' '.ranks == 4 and
    (.bytes_per_s - 412.97e9 | fabs < 1) and .at_bytes == 1073741824'
tier=$(jq -r .tier "$OUT")
expect 'the cluster has it then' 0 moefold cluster dgx-h100:2 --json
expect_json 'as a measured figure' "(.tiers[] | select(.name == \"$tier\") |
    .bytes_per_s - 412.97e9 | fabs < 1) and ([.sources[] |
    select(.field == \"tiers.$tier.bytes_per_s\") | .how] == [\"measured\"])"
grep -v '^ ' allreduce.txt >empty.txt
expect 'no table' 2 moefold history import empty.txt --cluster dgx-h100:2
sed 's/Rank  1.*on   node7/Rank  1 Group  0 Pid 1 on   node8/' allreduce.txt |
    grep -v 'Rank  [23]' >two.txt
expect 'two hosts' 0 moefold history import two.txt --cluster dgx-h100:2 --json
expect_json 'are never the tier of one node' ".tier != \"$tier\""

done_testing
