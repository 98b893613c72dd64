"""What programs and files in /proc tell of the processes, the mounts and the node of a container."""

from datetime import timedelta

from mockube.container_runtime.simulated.shell.process import Host, NodeSize, OtherProcess
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.simulated.shell.vfs.mount_table import Mount
from tests.support.shell_scripts import NOW, run


def container(**options):
    volume = FileSystem(capacity=1 << 20)
    mounts = {"/m": Mount(files=volume, read_only=True)}
    files = FileSystem({"/m": FileEntry()}, mounts=mounts)
    first = OtherProcess(1, ("nginx: master process nginx -g daemon off;",), 0, NOW - timedelta(seconds=90))
    return Host(
        hostname="web-1",
        files=files,
        now=lambda: NOW,
        programs=PROGRAMS,
        find_others=lambda: (first,),
        find_size=lambda: NodeSize(cpus=2, memory_bytes=4 << 30),
        **options,
    )


def script(text, **options):
    return run("sh", "-c", text, host=container(**options))[0]


def test_first_process_of_the_container_has_the_id_one():
    lines = script("ps; echo $$").splitlines()
    assert [line.split(None, 3) for line in lines[1:-1]] == [
        ["1", "root", "0:00", "nginx: master process nginx -g daemon off;"],
        ["7", "root", "0:00", "sh -c ps; echo $$"],
        ["12", "root", "0:00", "ps"],
    ]
    assert lines[-1] == "7"
    assert "nginx: master process" in script("top -b -n1")


def test_command_without_others_is_the_first_process():
    host = container()
    host.find_others = tuple
    assert run("sh", "-c", "echo $$", host=host)[0] == "1\n"


def test_programs_and_files_tell_of_the_same_node():
    assert script("nproc; grep -c processor /proc/cpuinfo") == "2\n2\n"
    assert (
        script("free -k | awk '/Mem/ {print $2}'; awk '/MemTotal/ {print $2}' /proc/meminfo")
        == "4194304\n4194304\n"
    )
    assert script("cut -d. -f1 /proc/uptime; cut -d' ' -f1-3 /proc/loadavg") == "90\n0.00 0.00 0.00\n"
    assert "up 0:01" in script("uptime")


def test_programs_and_files_tell_of_the_same_mounts():
    assert script("grep /m /proc/mounts | grep sdb") == "/dev/sdb /m ext4 ro,relatime 0 0\n"
    assert script("mount | grep /m") == "/dev/sdb on /m type ext4 (ro,relatime)\n"


def test_files_about_the_system_have_the_form_of_linux():
    assert script("grep -c ^cpu /proc/stat; awk '/^btime/ {print $2}' /proc/stat") == (
        f"3\n{NOW.timestamp() - 90:.0f}\n"
    )
    assert script("awk '$5 == \"/m\" {print $9, $10}' /proc/self/mountinfo") == "/dev/sdb ro\n"
    assert script("awk '/eth0/ {print NF}' /proc/net/dev") == "17\n"


def test_full_device_has_no_space():
    output, errors, code, _ = run(
        "sh", "-c", "head -c 3 /dev/full | wc -c; echo x > /dev/full", host=container()
    )
    assert (output, code) == ("3\n", 1)
    assert errors
