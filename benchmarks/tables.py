"""The tables of README.md, of benchmarks/README.md and of pages below docs/, from stored results: nothing is typed."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from benchmarks import machine
from benchmarks.ways import COMMAND, LIMIT, START
from benchmarks.workloads import WORKLOADS
from lab.written import replaced

Result: TypeAlias = Mapping[str, Any]

ROOT: Final = Path(__file__).parents[1]
README: Final = ROOT / "README.md"
PAGE: Final = ROOT / "benchmarks" / "README.md"
COPIES: Final = ROOT / "docs" / "bootstrap.md"
RESTORES: Final = ROOT / "docs" / "restore.md"
SIZING: Final = ROOT / "docs" / "sizing.md"
_BEGIN: Final = "<!-- {}: written by `python -m benchmarks.all` from benchmarks/results -->\n"
_END: Final = "<!-- end of {} -->\n"
_SERVERS: Final = {"mariadb": "MariaDB", "mysql": "MySQL"}
_WAYS: Final = {
    "client pipe": "`mariadb-binlog \\| mariadb`",
    "replica, 1 thread": "the server's own replica, 1 thread",
    "replica, 8 threads": "the server's own replica, 8 threads",
    "binlane, replay, 1 lane": "binlane, replay, 1 lane (the source's order)",
    "binlane, replay, 4 lanes": "binlane, replay, 4 lanes",
    "binlane, reduce, 1 lane": '`reduce = "block"`, 1 lane (the source\'s order, block by block)',
    "binlane, reduce, 4 lanes": '`reduce = "block"`, 4 lanes',
    "binlane, reduce the window, 1 lane": '`reduce = "window"`, 1 lane',
    "binlane, reduce the window, 4 lanes": '`reduce = "window"`, 4 lanes (what the default, "auto", takes here)',
    LIMIT: "the limit: `LOAD DATA` of the net rows, a table a statement, 4 sessions",
}
"""The ways of the first table, in its order, with the table's words; the whole command has a sentence below it."""
_LANES_OF_FOUR: Final = ("binlane, replay, 4 lanes", "binlane, reduce, 4 lanes", "binlane, reduce the window, 4 lanes")
_MINUTES: Final = "scale-mariadb-minutes.json"
WINDOWS: Final = (
    _MINUTES,
    "scale-mariadb-minutes-oltp.json",
    "scale-mysql-minutes.json",
    "scale-mariadb-hour.json",
    "scale-mysql-hour.json",
)
"""Results of windows with ``--whole``: of ten minutes, and of an hour, of a source with 1,000 transactions a second."""
DURATIONS: Final = "durations.json"
"""What each benchmark of ``benchmarks.all`` took, in seconds."""
LATER: Final = ("tenants", "fleet")
"""Workloads whose second window is measured, too."""
_HOUR_UNDER_AIRFLOW: Final = "under-airflow-hour.json"
_REPLICA: Final = "replica, 8 threads"
_WHOLE: Final = ("extract", "filter", "check", "apply", "advance")
_ENGINES: Final = {
    "session": "a Spark session that stays",
    "submit": "a spark-submit",
    "local": "local processes",
    "empty": "an empty window",
}
_STEPS: Final = ("extract", "filter", "check", "start_up", "apply", "advance")


def write_pages(results: Path = machine.RESULTS) -> None:
    """Write all tables. Raises ValueError if a page has lost the marks of one."""
    for page, parts in PARTS.items():
        text = page.read_text("utf-8")
        for name, part in parts.items():
            text = with_part(text, name, part(results), str(page))
        page.write_text(text, "utf-8")


def with_part(page: str, name: str, part: str, place: str) -> str:
    """The page with the part of this name replaced. Raises ValueError if its marks are missing."""
    return replaced(page, _BEGIN.format(name), _END.format(name), f"{part}\n", f"{place}: {name}")


def headline(results: Path) -> str:
    """Two lines: many small transactions, and the window of ten minutes, beside the server's own replica."""
    found = _stored(results, "native-mariadb-durable.json")
    rate = found["ways"]["binlane, reduce, 4 lanes"]["transactions_per_second"]
    [window] = _stored(results, _MINUTES)["windows"].values()
    run, best = _seconds_of_window(window)
    return (
        "| on 2 cores, durable, equal checksums | binlane | the server's own replica, 8 threads |\n|---|---|---|\n"
        f"| small transactions a second, 4 lanes ({_server(found)}) | {_rate(rate)} | {_rate(_best(found))} |\n"
        f"| ten minutes of a source with 1,000 transactions a second ({window['bytes'] / 1e9:.2f} GB of log), "
        f"`binlane run` | {run:.1f} s | {best:.0f} s |\n"
    )


def every_way(results: Path) -> str:
    """All ways of one run on one log."""
    found = _stored(results, "native-mariadb-durable.json")
    ways, log = found["ways"], found["log"]
    rows = [
        (
            words,
            _rate(way["transactions_per_second"]),
            _ratio(way["ratio"]),
            _of_limit(way, found),
            _whole(way, found),
            f"{_median(run['target_cpu_seconds'] for run in way['runs']):.1f}",
        )
        for name, words in _WAYS.items()
        if (way := ways.get(name)) is not None
    ]
    head = ("way", "transactions/s", "to the best replica", "to the limit", "all steps, to START REPLICA",
            "CPU of the target, s")  # fmt: skip
    return (
        f"{log['transactions']:,} small transactions over 32 databases, {log['bytes'] / 1e6:.1f} MB of log; "
        f"{_server(found)}; "
        f"{_runs(found)}{_measured_once(ways)}.\nEvery target ended with the source's checksums.\n\n"
        f"{_table(head, rows)}\n{_command(results)}{_hour(results)}"
    )


def _measured_once(ways: Result) -> str:
    """Which ways have one run where others have more."""
    most = max(len(way["runs"]) for way in ways.values())
    once = [words for name, words in _WAYS.items() if name in ways and len(ways[name]["runs"]) == 1 < most]
    return f" ({' and '.join(once)}: one run)" if once else ""


def _command(results: Path) -> str:
    """A sentence on the whole command, measured on the same log."""
    found = _with_command(results, "mariadb", "tenants")
    seconds = _median(run["seconds"] for run in found["ways"][COMMAND]["runs"])
    best = found["log"]["transactions"] / _best_whole(found)
    ratio = _ratio(found["ways"][COMMAND]["ratio"])
    return (
        f"The whole command `binlane run`, from its start to its end: {seconds:.1f} s where the replica took "
        f"{best:.1f} s from START REPLICA, {ratio} times as fast ({_runs(found)}).\n"
    )


def _hour(results: Path) -> str:
    """Two lines on the window of an hour."""
    found, airflow = _stored(results, "scale-mariadb-hour.json"), _stored(results, _HOUR_UNDER_AIRFLOW)
    [window], [under] = found["windows"].values(), airflow["medians"].values()
    run, best = _seconds_of_window(window)
    measured = _machine({**found, "windows": [window, *window["whole"].values()]})
    return (
        f"**An hour** of a source with 1,000 transactions a second ({window['bytes'] / 1e9:.1f} GB of log): `binlane "
        f"run` {run:.0f} s, the same under Airflow with a Spark\nsession that stays {under['seconds']:.0f} s, the "
        f"replica {best:.0f} s (one run each, largest process {max(window['peak_rss_mib'].values())} MiB; "
        f"{measured}).\n"
    )


def _seconds_of_window(window: Result) -> tuple[float, float]:
    """Of ``binlane run`` and of the replica."""
    whole = window["whole"]
    return whole[COMMAND]["seconds"], whole[START if START in whole else _REPLICA]["seconds"]


def workloads(results: Path) -> str:
    """One line for each workload that was measured, of both families."""
    rows = []
    for flavor in _SERVERS:
        for name in WORKLOADS:
            file = results / native_file(flavor, name)
            if not file.exists():
                continue
            found = _stored(results, file.name)
            four = [found["ways"].get(key) for key in _LANES_OF_FOUR]
            whole = ", ".join(_whole(way, found) for way in four if way is not None)
            command = _with_command(results, flavor, name)["ways"].get(COMMAND)
            limit = found["ways"].get(LIMIT)
            fastest = max((way for way in four if way is not None), key=lambda way: way["transactions_per_second"])
            ratios = (*(_ratio(way and way["ratio"]) for way in (*four, limit)), _of_limit(fastest, found),
                      _ratio(command and command["ratio"]))  # fmt: skip
            receiving = _rate(_best_whole(found)) if START in found["ways"] else ""
            rows.append((f"`{name}`", _server(found), _rate(_best(found)), receiving, *ratios, whole, _runs(found)))
        rows += _later_windows(results, flavor)
    head = ("workload", "servers", "best replica, transactions/s", "the same receiving", "replay", '"block"',
            '"window"', "the limit", "the fastest of the three, to the limit", "`binlane run`", "all steps",
            "measured with")  # fmt: skip
    return _table(head, rows)


def _later_windows(results: Path, flavor: str) -> Iterator[tuple[str, ...]]:
    """The lines of windows that are not their channel's first, as far as they were measured."""
    for workload in LATER:
        file = results / later_file(flavor, workload)
        if file.exists():
            found = _stored(results, file.name)
            ratio, receiving = _ratio(found["ways"][COMMAND]["ratio"]), _rate(_best_whole(found))
            yield f"`{workload}`, a later window", _server(found), "", receiving, *("",) * 5, ratio, "", _runs(found)


def archive(results: Path) -> str:
    """The plan job over windows of an archive."""
    found = _stored(results, "archive.json")
    rows = [
        (
            f"{each['segments']}",
            f"{each['bytes'] / 1e9:.1f}",
            f"{each['workers'] or 'no Spark'}",
            f"{each['seconds']:.0f}",
            f"{each['bytes'] / each['seconds'] / 1e6:.0f}",
            *(_seconds(each, kind) for kind in ("scan", "map")),
            f"{sum(job['shuffled_bytes'] for job in each['jobs'])}",
            *(f"{each['peak_rss_mib'].get(of, '')}" for of in _PROCESSES),
            f"{each['load_before'][0]:.1f}",
        )
        for each in found["windows"]
    ]
    head = ("segments", "GB", "workers", "seconds", "MB/s", "scan, s", "map, s", "shuffled bytes",
            *(f"{name}, MiB" for name in _PROCESSES), "load before")  # fmt: skip
    return f"{_machine(found)}.\n\n{_table(head, rows)}"


def whole_windows(results: Path) -> str:
    """Windows through all steps, long ones among them, beside the replica on the same log."""
    rows = []
    for file in (results / name for name in WINDOWS if (results / name).exists()):
        found = _stored(results, file.name)
        for window in found["windows"].values():
            run, known = window["whole"][COMMAND], window["whole"]
            native = [known[name]["seconds"] if name in known else None for name in (_REPLICA, START)]
            best = native[1] or native[0]
            rows.append(
                (
                    _server(found) if "source" in found else _SERVERS[found["arguments"]["flavor"]],
                    f"`{found['arguments']['workload']}`",
                    f"{window['transactions']:,}",
                    f"{window['bytes'] / 1e6:,.0f}",
                    *(f"{window['seconds'][step]:.1f}" for step in _WHOLE),
                    f"{max(window['peak_rss_mib'].values()):,}",
                    f"{window['peak_rss_mib']['apply']:,}",
                    f"{window['work_folder_bytes'] / 1e6:,.0f}",
                    f"{run['seconds']:.1f}",
                    *("" if each is None else f"{each:.1f}" for each in native),
                    "" if best is None else f"{best / run['seconds']:.1f}",
                    f"{_times(run)}, {_machine({**found, 'windows': [window, *window['whole'].values()]})}",
                )
            )
    head = ("servers", "workload", "transactions", "log, MB", *(f"{step}, s" for step in _WHOLE),
            "largest process, MiB", "a lane, MiB", "work folder, MB", "`binlane run`, s", "replica, 8 threads, s",
            "the same receiving, s", "times the replica", "measured with")  # fmt: skip
    return _table(head, rows)


def _times(way: Result) -> str:
    """How often a whole window was measured."""
    count = len(way.get("runs", (way,)))
    return "one run" if count == 1 else f"the command: median of {count} runs, all else: one run"


def under_airflow(results: Path) -> str:
    """Windows under Airflow, by the plan job's engine, step by step."""
    found = _stored(results, "under-airflow.json")
    columns = {_ENGINES.get(name, name): each for name, each in found["medians"].items()}
    title = f"{found['arguments']['transactions']:,} transactions"
    counts = {len(windows) for windows in found["windows"].values()}
    measured = [window for windows in found["windows"].values() for window in windows]
    if (results / _HOUR_UNDER_AIRFLOW).exists():
        hour = _stored(results, _HOUR_UNDER_AIRFLOW)
        for name, each in hour["medians"].items():
            columns[f"{hour['arguments']['transactions']:,} transactions, {_ENGINES[name]} (one run)"] = each
        measured += [window for windows in hour["windows"].values() for window in windows]
    steps = next(iter(columns.values()))["steps"]
    rows = [(f"`{step}`" if "_" in step else step, *(f"{each['steps'][step]:.1f}" for each in columns.values()))
            for step in steps]  # fmt: skip
    rows.append(("**whole**", *(f"**{each['seconds']:.1f}**" for each in columns.values())))
    return (
        f"{title} in each window, over 32 databases, {found['arguments']['lanes']} lanes; MariaDB "
        f"{_series(found['target']['version'])}; seconds, medians of {min(counts)} windows;\n"
        f"{_machine({**found, 'windows': measured})}.\n\n{_table(('step', *columns), rows)}"
    )


def lag(results: Path) -> str:
    """Seconds behind a live source."""
    rows = []
    for flavor in _SERVERS:
        found = _stored(results, f"lag-{flavor}.json")
        for name, way in found["ways"].items():
            rows.append(
                (
                    f"{_SERVERS[flavor]} {_series(found['settings']['version'])}",
                    f"`{name}`" if name.startswith("binlane") else name,
                    f"{way['transactions_per_second']}",
                    *(f"{way[f'{what}_seconds']:.2f}" for what in ("median", "p99", "most")),
                    # the replica is a part of the target's process
                    *(f"{way[f'{what}_cores']:.3f}" if name.startswith("binlane") else "" for what in ("busy", "idle")),
                    f"{way['load'][0]:.1f}",
                )
            )
    head = ("servers", "way", "transactions/s of the source", "median, s", "99 of 100 looks, s", "most, s",
            "cores used", "cores used, idle source", "load before")  # fmt: skip
    on = found["machine"]
    return f"{on['cores']} cores ({on['model']}), ten looks a second for a minute.\n\n{_table(head, rows)}"


def rows_as_sql(results: Path) -> str:
    """The apply step with rows as SQL, beside the replica of the same run."""
    found = _stored(results, "native-mariadb-durable-sql.json")
    rows = [
        (
            name,
            _rate(way["transactions_per_second"]),
            _ratio(way["ratio"]),
            f"{_median(run['target_cpu_seconds'] for run in way['runs']):.1f}",
            *(
                f"{_median(measure(run) for run in way['runs']):{form}}" if "lanes" in way["runs"][0] else ""
                for measure, form in ((_cpu_of_lanes, ".1f"), (_largest_lane, ".0f"))
            ),
        )
        for name, way in found["ways"].items()
    ]
    head = ("way", "transactions/s", "to the best replica", "CPU of the target, s", "CPU of the lanes, s",
            "largest lane, MiB")  # fmt: skip
    return f"{_server(found)}; {_runs(found)}.\n\n{_table(head, rows)}"


def _cpu_of_lanes(run: Result) -> float:
    return sum(float(lane["cpu_seconds"]) for lane in run["lanes"])


def _largest_lane(run: Result) -> float:
    return max(float(lane["peak_rss_mib"]) for lane in run["lanes"])


def large_divided(results: Path) -> str:
    """One large transaction into one table, dealt by key to two lanes, beside the replica of the same run."""
    rows = []
    for flavor in _SERVERS:
        found = _stored(results, divided_file(flavor, "large"))
        for name, way in found["ways"].items():
            rows.append(
                (
                    _server(found),
                    name,
                    f"{_median(run['seconds'] for run in way['runs']):.2f}",
                    _ratio(way["ratio"]),
                    f"{_median(run['target_cpu_seconds'] for run in way['runs']):.1f}",
                    f"{_median(map(_cpu_of_lanes, way['runs'])):.1f}" if "lanes" in way["runs"][0] else "",
                    _runs(found),
                )
            )
    head = ("servers", "way", "apply, s", "to the replica", "CPU of the target, s", "CPU of the lanes, s",
            "measured with")  # fmt: skip
    return _table(head, rows)


def distant(results: Path) -> str:
    """Lanes against a target whose answers are late; what waiting alone would take stands beside what it took."""
    found = _stored(results, "distant-mariadb.json")
    late = found["arguments"]["milliseconds"] / 1000
    rows = [
        (
            f"`{name}`",
            lanes,
            f"{run['seconds']:.2f}",
            f"{next(iter(curve.values()))['seconds'] / run['seconds']:.2f}",
            f"{run['blocks']:,}",
            f"{run['answers']:,}",
            f"{run['answers'] * late / int(lanes):.2f}",
            f"{run['target_cpu_seconds']:.2f}",
        )
        for name, curve in found["workloads"].items()
        for lanes, run in curve.items()
    ]
    head = ("workload", "lanes", "apply, s", "times one lane", "blocks", "answers of the target",
            "answers x lateness / lanes, s", "CPU of the target, s")  # fmt: skip
    measured = [{"load_before": run["load_before"]} for curve in found["workloads"].values() for run in curve.values()]
    return f"{_machine({**found, 'windows': measured})}.\n\n{_table(head, rows)}"


def sizing(results: Path) -> str:
    """What rows and blocks cost, and how far the model's predictions are from what was measured."""
    costs, runs, measured = [], [], []
    for flavor in _SERVERS:
        file = results / f"sizing-{flavor}.json"
        if not file.exists():
            continue
        found = _stored(results, file.name)
        servers = _SERVERS[flavor]
        for name, workload in found["workloads"].items():
            cost = workload["costs"]
            costs.append(
                (
                    servers,
                    f"`{name}`",
                    *(f"{cost[f'{of}_{part}'] * 1e6:,.0f}" for of in ("target", "lane") for part in ("row", "block")),
                    *(f"{cost[f'answers_{per}']:.1f}" for per in ("block", "lane")),
                    f"{workload['median_error']:.0%}",
                )
            )
            measured += [{"load_before": run["load_before"]} for run in workload["runs"]]
            runs += [
                (
                    servers,
                    f"`{name}`",
                    f"{run['target_cores']}",
                    f"{run['late_ms']:g}",
                    f"{run['lanes']}",
                    f"{run['predicted_seconds']:.2f}",
                    f"{run['seconds']:.2f}",
                    f"{run['error']:+.0%}",
                )
                for run in workload["runs"]
            ]
    head = ("servers", "workload", "target, µs a row", "target, µs a block", "lane, µs a row", "lane, µs a block",
            "answers a block", "answers a lane", "median error of the predictions")  # fmt: skip
    lines = ("servers", "workload", "cores of the target", "answers late by, ms", "lanes", "predicted, s",
             "measured, s", "error")  # fmt: skip
    return f"{_machine({**found, 'windows': measured})}.\n\n{_table(head, costs)}\n{_table(lines, runs)}"


def first_copies(results: Path) -> str:
    """A first copy beside the families' logical tools, on the same rows."""
    rows = []
    for flavor in _SERVERS:
        found = _stored(results, f"copies-{flavor}.json")
        for name, way in found["ways"].items():
            loads = [run["load"][0] for run in way["runs"]]
            rows.append(
                (
                    f"{_SERVERS[flavor]} {_series(found['settings']['version'])}",
                    f"`{name.replace('|', chr(92) + '|')}`" if "|" in name else name,
                    f"{way['seconds']:.2f} s",
                    _rate(way["rows_per_second"]),
                    _ratio(way["ratio"]),
                    f"{min(loads):.1f} to {max(loads):.1f}",
                )
            )
    head = ("servers", "way", "time", "rows a second", "to the best other tool", "load before")
    count, on = len(next(iter(found["ways"].values()))["runs"]), found["machine"]
    return (
        f"{found['rows']:,} rows in three tables of one database, {found['bytes'] / 1e6:.0f} MB, copied to an empty "
        f"target by each way;\nmedians of {count} runs, source and target on one machine with {on['cores']} cores "
        f"({on['model']}), durable settings; every copy was compared\nwith the source (`python -m benchmarks.copies`)."
        f"\n\n{_table(head, rows)}"
    )


def restores(results: Path) -> str:
    """One tenant of a log, and all of them, beside the client pipe and the server's own replica."""
    files = [f"restore-{flavor}.json" for flavor in _SERVERS]
    rows, heads = [], []
    for found in (_stored(results, name) for name in files if (results / name).exists()):
        log, index = found["log"], found["index"]
        heads.append(
            f"{_server(found)}: {log['transactions']:,} transactions over 32 databases, {log['bytes'] / 1e9:.2f} GB of "
            f"log in {log['files']} files, base by {found['base']['program']}; index: {index['seconds']:.0f} s, "
            f"{index['bytes'] / log['bytes']:.2%} of the log; {_runs(found)}{_restored_once(found)}."
        )
        for name, way in found["ways"].items():
            peaks = [run["peak_rss_mib"] for run in way["runs"] if "peak_rss_mib" in run]
            rows.append(
                (
                    _server(found),
                    _RESTORES.get(name, name),
                    f"{log['stretch_bytes' if way['is_stretch'] else 'bytes'] / 1e6:,.0f}",
                    f"{way['databases']}",
                    f"{way['seconds']:.1f}",
                    f"{way['mb_per_second']:.1f}",
                    _ratio(way["ratio"]),
                    f"{max(peaks)}" if peaks else "",
                )
            )
    if not rows:
        return ""
    head = ("servers", "way", "log, MB", "databases", "seconds", "MB of log a second", "to the replica",
            "largest process, MiB")  # fmt: skip
    return "\n".join(heads) + f"\n\n{_table(head, rows)}"


_RESTORES: Final = {
    "binlane restore": "`binlane restore`",
    "binlane restore, indexed": "`binlane restore`, archive with an index",
    "replica, 8 threads, filtered": "the server's own replica, 8 threads, with filters",
    "client pipe": "client pipe, with `--rewrite-db` and `--database`",
    "binlane restore, all databases": "`binlane restore`, all databases",
    "replica, 8 threads, all databases": "the server's own replica, 8 threads, all databases",
}
"""The ways of ``benchmarks.restore``, in the table's words."""


def _restored_once(found: Result) -> str:
    once = [_RESTORES.get(name, name) for name, way in found["ways"].items() if len(way["runs"]) == 1]
    return f" ({', '.join(once)}: one run)" if once and found["arguments"]["runs"] > 1 else ""


def first_use(results: Path) -> str:
    """From the wheel to "every row equal", and windows of one size, one after the other."""
    files = [f"first-use-{flavor}.json" for flavor in _SERVERS]
    found = [_stored(results, name) for name in files if (results / name).exists()]
    if not found:
        return ""
    shown = ("new", "bootstrap", "first window", "verify", "second window", "third window", "empty window")
    rows = [
        (
            f"{_SERVERS[each['arguments']['flavor']]} {_series(each['settings']['version'])}",
            *(f"{each['commands'][name]['seconds']:.1f}" for name in shown),
            f"{sum(each['commands'][name]['seconds'] for name in shown[:4]):.1f}",
        )
        for each in found
    ]
    head = ("servers, seconds", "`binlane new`", "`bootstrap`", "`run`, for the first time", "`verify --full`",
            "`run` again", "`run` once more", "`run` with nothing to do", "to \"every row equal\"")  # fmt: skip
    first = found[0]
    return (
        "These commands on one machine with both servers, for the first time and again; "
        f"{first['rows']:,} rows at the start, {first['arguments']['transactions']:,} transactions in each window;\n"
        f"the environment had nothing but the wheel and its packages, {first['packages_bytes'] / 1e6:.0f} MB; one run, "
        f"{_machine({**first, 'windows': found})}.\n\n{_table(head, rows)}"
    )


def durations(results: Path) -> str:
    """What all benchmarks took."""
    if not (results / DURATIONS).exists():
        return ""
    found = _stored(results, DURATIONS)
    whole, longest = sum(found.values()) / 60, sorted(found, key=lambda name: -found[name])[:5]
    return (
        f"{len(found)} benchmarks of `benchmarks.all` took {whole:.0f} minutes, each when it was last measured; the "
        "longest were " + ", ".join(f"`{name}` {found[name] / 60:.1f}" for name in longest) + "."
    )


_PROCESSES: Final = ("driver JVM", "driver Python", "executor JVM", "executor Python", "process")
PARTS: Final[Mapping[Path, Mapping[str, Callable[[Path], str]]]] = {
    README: {"headline": headline, "first use": first_use},
    PAGE: {
        "durations": durations,
        "all ways": every_way,
        "workloads": workloads,
        "large over two lanes": large_divided,
        "rows as SQL": rows_as_sql,
        "whole windows": whole_windows,
        "windows under Airflow": under_airflow,
        "lag": lag,
        "archive": archive,
        "distant target": distant,
    },
    COPIES: {"first copies": first_copies},
    RESTORES: {"restores": restores},
    SIZING: {"sizing": sizing},
}
"""The written parts of the pages, each by a function of the folder of results."""


def native_file(flavor: str, workload: str) -> str:
    """The name of the result of a durable run of ``benchmarks.native``."""
    return f"native-{flavor}-durable{'' if workload == 'tenants' else f'-{workload}'}.json"


def later_file(flavor: str, workload: str) -> str:
    """The name of the result of windows that are not a channel's first."""
    return native_file(flavor, workload).replace(".json", "-later.json")


def divided_file(flavor: str, workload: str) -> str:
    """The name of the result of a run over a divided shard."""
    return native_file(flavor, workload).replace(".json", "-divided.json")


def command_file(flavor: str, workload: str) -> str:
    """The name of the result of a run that measured the whole command beside the replica."""
    return native_file(flavor, workload).replace(".json", "-command.json")


def _with_command(results: Path, flavor: str, workload: str) -> Result:
    """The run that measured the whole command: one of its own, or that of all ways."""
    own = command_file(flavor, workload)
    return _stored(results, own if (results / own).exists() else native_file(flavor, workload))


def _stored(results: Path, name: str) -> Result:
    found: Result = json.loads((results / name).read_text("utf-8"))
    return found


def _seconds(window: Result, kind: str) -> str:
    """Of a Spark job; empty without Spark."""
    return "".join(f"{each['seconds']:.1f}" for each in window["jobs"] if each["name"].startswith(f"{kind}:"))


def _whole(way: Result, found: Result) -> str:
    """The time of all steps of a window, as the replica's time divided by it; empty for ways that have no steps."""
    runs = [run for run in way["runs"] if "extract_seconds" in run]
    if not runs:
        return ""
    seconds = _median(sum(run[f"{step}_seconds"] for step in _STEPS) for run in runs)
    return f"{found['log']['transactions'] / _best_whole(found) / seconds:.2f}"


def _of_limit(way: Result, found: Result) -> str:
    """How fast a way is to the server's own fastest way, LOAD DATA of the net rows; empty where that was not measured,
    and for ways that are not binlane's."""
    limit = found["ways"].get(LIMIT)
    if limit is None or way is limit or "lanes" not in way["runs"][0]:
        return ""
    return _ratio(float(way["transactions_per_second"]) / float(limit["transactions_per_second"]))


def _best_whole(found: Result) -> float:
    """Transactions a second of the native replica that receives the log; of the best one that has it, in results of
    before it was measured."""
    own = found["ways"].get(START)
    return _best(found) if own is None else float(own["transactions_per_second"])


def _best(found: Result) -> float:
    """Transactions a second of the best native replica that has the log already."""
    return max(
        float(way["transactions_per_second"]) for name, way in found["ways"].items() if name.startswith("replica")
    )


def _server(found: Result) -> str:
    return f"{_SERVERS[found['arguments']['flavor']]} {_series(found['source']['version'])}"


def _runs(found: Result) -> str:
    runs = found["arguments"]["runs"]
    return f"{'one run' if runs == 1 else f'medians of {runs} runs'}, {_machine(found)}"


def _series(version: str) -> str:
    return ".".join(version.partition("-")[0].split(".")[:2])


def _machine(found: Result) -> str:
    measured = found.get("windows") or [run for way in found["ways"].values() for run in way["runs"]]
    loads = [run["load_before"][0] for run in measured]
    model = found["machine"]["model"].replace("(R)", "").partition(" @")[0]
    day = found["machine"]["started_at"].partition("T")[0]
    return f"{found['machine']['cores']} cores ({model}), load {min(loads):.1f} to {max(loads):.1f}, {day}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(_lines(head, rows))


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |\n{'|---' * len(head)}|\n"
    for row in rows:
        yield f"| {' | '.join(row)} |\n"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate > 100 else f"{rate:.3f}"


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _median(values: Iterable[float]) -> float:
    return float(statistics.median(values))
