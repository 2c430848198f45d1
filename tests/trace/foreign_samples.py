"""A small made-up file of every format: name of the file and its text."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from artist.errors import TraceError
from artist.trace.read import read_trace

HELIOS_HEADER = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
)
HELIOS = [
    HELIOS_HEADER,
    "11,uA,vc,8,32,1,COMPLETED,2020-04-01 00:10:00,2020-04-01 00:11:00,2020-04-01 01:11:00,3600,60",
    "12,uB,vcX,0,4,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:01:00,60,0",
    "13,uB,vcX,1,4,1,FAILED,2020-04-01 00:00:30,2020-04-01 00:00:30,2020-04-01 00:01:00,30,0",
    "14,uB,vcX,2,4,1,CANCELLED,2020-04-01 00:02:00,None,2020-04-01 00:03:00,0,60",
    "15,uB,vcX,2,4,1,FAILED,2020-04-01 00:02:00,,2020-04-01 00:03:00,0,60",
    "16,uC,vcX,2,4,1,FAILED,2020-04-01 00:02:00,2020-04-01 00:03:00,2020-04-01 00:03:00,0,60",
    "13,uC,vcX,2,4,1,FAILED,2020-04-01 00:02:00,2020-04-01 00:03:00,2020-04-01 00:03:09,9,60",
]


def _attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, object]:
    detail = [{"ip": f"m{i}", "gpus": [f"gpu{j}" for j in range(n)]} for i, n in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": detail}


def _philly(name: str, status: str, *attempts: dict[str, object]) -> dict[str, object]:
    return {
        "status": status,
        "vc": "6214e9",
        "jobid": name,
        "attempts": list(attempts),
        "submitted_time": "2017-10-07 01:00:00",
        "user": "u1" if name != "no-user" else None,
    }


PHILLY = [
    _philly(
        "twice",
        "Pass",
        _attempt("2017-10-07 01:01:00", "2017-10-07 01:02:00", 8, 8),
        _attempt("2017-10-07 02:00:00", "2017-10-07 03:00:00", 8, 8),
    ),
    _philly("no-user", "Killed", _attempt("2017-10-07 01:01:00", "2017-10-07 01:02:00", 1)),
    _philly("waiting", "Killed"),
    _philly("failed", "Failed"),
    _philly("running", "Pass", _attempt("2017-10-07 01:01:00", None, 1)),
    _philly("lost", "Pass", _attempt(None, "2017-10-07 01:02:00", 1)),
    _philly("cpu", "Pass", _attempt("2017-10-07 01:01:00", "2017-10-07 01:02:00")),
    _philly("clock", "Pass", _attempt("2017-11-05 01:59:00", "2017-11-05 01:01:00", 1)),
]

PAI_HEADER = (
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type"
)
PAI = [
    "j1,ps,2.0,Terminated,1000.0,1300.0,600.0,29.3,,MISC",
    "j1,worker,4.0,Terminated,1010.0,1310.0,600.0,29.3,200.0,V100",
    "j2,tensorflow,1.0,Terminated,1500.5,1600.5,600.0,29.3,100.0,MISC",
    "j3,tensorflow,1.0,Waiting,,,600.0,29.3,100.0,MISC",
    "j4,tensorflow,1.0,Failed,,,600.0,29.3,100.0,MISC",
    "j5,tensorflow,1.0,Running,1700,,600.0,29.3,100.0,MISC",
    "j6,tensorflow,1.0,Terminated,1700,1800,600.0,29.3,0.0,MISC",
]
PAI_SHARED = [*PAI, "j7,worker,2.0,Terminated,1800,1900,600.0,29.3,50.0,MISC"]

OPENB_HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)
OPENB = [
    OPENB_HEADER,
    "p0,12000,16384,8,1000,V100M16|V100M32,LS,Succeeded,100,400,150",
    "p1,12000,16384,0,0,,LS,Running,0,400,0",
    "p2,12000,16384,1,1000,,BE,Pending,110,400,",
    "p3,12000,16384,1,1000,,BE,Failed,120,400,130",
]
OPENB_SHARED = [*OPENB, "p4,12000,16384,1,460,,BE,Running,130,400,140"]

SIA = [
    "name,time,application,num_replicas,batch_size",
    "cifar10-0,107,cifar10,6,2048",
    "yolov3-1,110.5,yolov3,2,64",
]

GAVEL10 = [
    "ResNet-50 (batch size 64)\tpython3 main.py -b 64\timagenet\t--num\t1\t1000\t2\t1\t-1.0\t0",
    "A3C\tpython3 main.py\trl\t--max\t0\t7176\t1\t1\t-1.0\t60.5",
    "Mystery (batch size 1)\tpython3 x.py\tx\t--max\t0\t100\t1\t1\t-1.0\t90",
]
GAVEL7 = ["LM (batch size 5)\tcd %s && python3 main.py\t--steps\t1\t1092\t7.0\t1"]
GAVEL9 = ["LM (batch size 5)\tpython3 main.py\t--steps\t1\t1092\t1\t1\t-1\t7.0"]

SHOCKWAVE = [
    "ResNet-18 (batch size 32)\tpython3 main.py\tcifar10\t--num\t1\t101\t2\tgns\t1\t-1.0\t1418\t5",
    "ResNet-50 (batch size 64)\tpython3 x.py\timagenet\t--num\t1\t500\t1\tstatic\t1\t-1.0\t720\t9",
]

TIRESIAS = [
    "job_id,num_gpu,submit_time,iterations,model_name,duration,interval",
    "0,1,0,606,net19,164,30",
    "1,8,30,133,vgg11,147,23",
    "2,0,31,1,vgg11,5,1",
]

SWF = [
    "; Version: 2.2",
    "; MaxNodes: 16",
    "",
    "1 0 5 3600 8 -1 -1 16 7200 -1 1 3 1 7 1 1 -1 -1",
    "2 60.5 -1 0 8 -1 -1 -1 -1 -1 1 3 1 7 1 1 -1 -1",
    "3 61 -1 -1 8 -1 -1 8 -1 -1 5 3 1 7 1 1 -1 -1",
    "4 62 -1 100 4 -1 -1 -1 -1 -1 0 -1 1 -1 1 1 -1 -1",
    "5 63 -1 100 4 -1 -1 -1 -1 -1 2 -1 1 -1 1 1 -1 -1",
    "6 64 -1 100 -1 -1 -1 0 -1 -1 1 -1 1 -1 1 1 -1 -1",
    "7 65 -1 -1 1 -1 -1 1 -1 -1 0 -1 1 -1 1 1 -1 -1",
]

SACCT = [
    "State|JobID|User|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|Partition|ReqTRES|AllocTRES",
    "COMPLETED|7|ann|2026-03-01T10:00:00|2026-03-01T10:00:00|2026-03-01T10:00:05"
    "|2026-03-01T10:01:05|60|30|main|cpu=1,gres/gpu=8|cpu=1,gres/gpu=8,node=1",
    "COMPLETED|7.batch||2026-03-01T10:00:00|2026-03-01T10:00:00|2026-03-01T10:00:05"
    "|2026-03-01T10:01:05|60|||cpu=1|cpu=1",
    "PREEMPTED|8_0|ben|2026-03-01T10:00:10|2026-03-01T10:00:10|2026-03-01T10:00:11"
    "|2026-03-01T10:00:31|20|5|low|gres/gpu:a100=2|gres/gpu:a100=2",
    "CANCELLED by 1001|9|ann|2026-03-01T10:00:20|Unknown|None"
    "|2026-03-01T10:00:30|0|5|main|gres/gpu=4|",
    "RUNNING|10|ann|2026-03-01T10:00:20|2026-03-01T10:00:20|2026-03-01T10:00:20"
    "|Unknown|99|UNLIMITED|main|gres/gpu=4|gres/gpu=4",
    "COMPLETED|11|ann|2026-03-01T10:00:20|2026-03-01T10:00:20|2026-03-01T10:00:20"
    "|2026-03-01T10:00:30|10|5|main|cpu=4|cpu=4",
    "PENDING|12_[3-9%2]|ann|2026-03-01T10:00:20|Unknown|Unknown|Unknown|0|5|main|gres/gpu=1|",
    "TIMEOUT|8_0|ben|2026-03-01T10:00:31|2026-03-01T10:02:31|2026-03-01T10:02:40"
    "|2026-03-01T10:07:40|300|5|low|gres/gpu:a100=2|gres/gpu:a100=2",
    "COMPLETED|13|cem|2026-03-01T10:00:40|2026-03-01T10:03:00|2026-03-01T10:03:01"
    "|2026-03-01T10:03:11|10|UNLIMITED|main|gres/gpu=1|gres/gpu=1",
    "COMPLETED|14+0|cem|2026-03-01T10:00:40|2026-03-01T10:03:00|2026-03-01T10:03:01"
    "|2026-03-01T10:03:11|10|5|main|gres/gpu=1|gres/gpu=1",
]

SQUEUE = [
    "ACCOUNT|TRES_PER_NODE|JOBID|NAME|TIME_LIMIT|PRIORITY||STATE|USER|JOBID|NODES|TIME_LEFT|TIME"
    "|START_TIME|REASON",
    "lab|gres:gpu:8|12|one|1-00:00:00|100||PENDING|ann|12|2|1-00:00:00|0:00|N/A|Priority",
    "lab|gres:gpu:1080ti:4|11|two|2:00:00|120||RUNNING|ben|11|1|30:00|1:30:00|2026-11-23T15:00:00|",
    "lab|gres/gpu=4|13|three|UNLIMITED|120||PENDING|ben|13|1|UNLIMITED|0:00|N/A|Priority",
    "lab|N/A|14|four|2:00|100||PENDING|ben|14|1|2:00|0:00|N/A|Priority",
    "lab|gres:gpu:1|15_1|five|2:00|100||PENDING|ben|15|1|2:00|0:00|N/A|JobHeldUser",
    "lab|gres:gpu,gres:disk:2|16|six|2:00|900||PENDING|cem|16|1|INVALID|0:00|N/A|Resources",
    "lab|gres:gpu:2|10|seven|1:00:00|90||RUNNING|cem|10|1|N/A|0:20:00|2026-11-23T14:00:00|",
    "lab|gres:gpu:2|9|eight|1:00:00|90||COMPLETING|cem|9|1|0:00|1:00:00|2026-11-23T13:00:00|",
    "lab|gres:gpu:2|17+1|nine|1:00:00|100||PENDING|cem|17|1|1:00:00|0:00|N/A|Priority",
]

NATIVE = [
    "job_id,arrival_s,gpus,model,iterations,compute_s,user,gpus_min,gpus_max,restart_s,hint_x",
    "a,0,4,BERT,100,0.25,ann,2,8,30,1",
    "b,10.5,1,ResNet50,5,1.5,,,,,2",
]
SIMPLE = ["job_id,submit_time,num_gpus,duration,vc", "a,0,2,2.5,blue", "b,1,1,0.2,red"]
SENSETIME = {
    "job_id": "7", "user": "ann", "model": "BERT", "total_iterations": "10",
    "time_per_iteration": "0.5", "max_parallelism": "4", "arrival_time": "60",
}  # fmt: skip


def _lines(rows: list[str]) -> str:
    return "\n".join(rows) + "\n"


FILES = {
    "native": ("native.csv", _lines(NATIVE)),
    "simple": ("simple.csv", _lines(SIMPLE)),
    "sensetime": ("sensetime.json", json.dumps([SENSETIME], indent=1)),
    "helios": ("cluster_log.csv", _lines(HELIOS)),
    "philly": ("cluster_job_log", json.dumps(PHILLY, indent=1)),
    "pai": ("pai_task_table.csv", _lines(PAI)),
    "openb": ("openb_pod_list.csv", _lines(OPENB)),
    "sia": ("workload-1.csv", _lines(SIA)),
    "gavel": ("small.trace", _lines(GAVEL10)),
    "shockwave": ("dynamic.trace", _lines(SHOCKWAVE)),
    "tiresias": ("60_job.csv", _lines(TIRESIAS)),
    "swf": ("log.swf", _lines(SWF)),
    "sacct": ("sacct.txt", _lines(SACCT)),
    "squeue": ("squeue.txt", _lines(SQUEUE)),
}


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def sample(folder: Path, format_: str) -> Path:
    """The sample file of a format, written to a folder."""
    return put(folder, *FILES[format_])


def assert_refused(path: Path, parts: Sequence[str]) -> None:
    """Refused in one line that begins with the file's name and has all parts."""
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    for part in parts:
        assert part in message


def printed_and_peak_mib(code: str, path: Path) -> tuple[str, int]:
    """What a process prints that runs `code` with a file's name, and its peak memory."""
    # Not ru_maxrss, which a child inherits from the process that forked it.
    peak = (
        "status = Path('/proc/self/status').read_text(); "
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import re, sys; from pathlib import Path; {code}{peak}", path],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    *printed, mib = done.stdout.split()
    return " ".join(printed), int(mib)
