"""What scripts may do with files as another user than root, and with file systems that are read-only; the words are busybox' and dash's."""

import pytest

from mockube.container_runtime.images.programs import programs_of_image
from mockube.container_runtime.simulated.shell.access import ContainerUser
from mockube.container_runtime.simulated.shell.process import Host
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry, NoSuchFile
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.images import IMAGES
from tests.support.shell_scripts import NOW, run

FILES = {
    "/box": FileEntry(mode=0o755),
    "/box/secret": FileEntry(data=b"x\n", mode=0o400),
    "/box/rootfile": FileEntry(data=b""),
    "/box/priv": FileEntry(mode=0o700),
    "/box/priv/f": FileEntry(data=b""),
    "/box/sticky": FileEntry(mode=0o1777),
    "/box/sticky/of-root": FileEntry(data=b""),
    "/shared": FileEntry(mode=0o2777, group=2000),
    "/tmp": FileEntry(mode=0o1777),
    "/etc/hostname": FileEntry(data=b"web-1\n"),
}


def container(user=1000, group=1000, others=(), **options):
    identity = ContainerUser(user, group, others)
    files = FileSystem(FILES, user=identity, **options)
    return Host(
        hostname="web-1",
        files=files,
        now=lambda: NOW,
        programs=PROGRAMS,
        user=user,
        group=group,
        other_groups=others,
    )


def script(text, host=None, shell="sh"):
    return run(shell, "-c", text, host=host or container())[:3]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo x > box/y", "sh: 1: cannot create box/y: Permission denied"),
        ("cat box/secret", "cat: can't open 'box/secret': Permission denied"),
        ("ls box/priv", "ls: can't open 'box/priv': Permission denied"),
        ("cat box/priv/f", "cat: can't open 'box/priv/f': Permission denied"),
        ("touch box/y", "touch: box/y: Permission denied"),
        ("touch box/rootfile", "touch: box/rootfile: Permission denied"),
        ("mkdir box/d", "mkdir: can't create directory 'box/d': Permission denied"),
        ("rm box/rootfile", "rm: can't remove 'box/rootfile': Permission denied"),
        ("rm -f box/rootfile", "rm: can't remove 'box/rootfile': Permission denied"),
        ("rm box/sticky/of-root", "rm: can't remove 'box/sticky/of-root': Operation not permitted"),
        ("cp box/secret /tmp/q", "cp: can't open 'box/secret': Permission denied"),
        ("cp /etc/hostname box/h", "cp: can't create 'box/h': Permission denied"),
        (
            "mv box/sticky/of-root box/sticky/z",
            "mv: can't rename 'box/sticky/of-root': Operation not permitted",
        ),
        ("mv box/rootfile box/z", "mv: can't rename 'box/rootfile': Permission denied"),
        ("ln -s x box/l", "ln: box/l: Permission denied"),
        ("chmod 777 box/rootfile", "chmod: box/rootfile: Operation not permitted"),
        ("chown 5 box/rootfile", "chown: box/rootfile: Operation not permitted"),
        ("chgrp 5 box/rootfile", "chgrp: box/rootfile: Operation not permitted"),
        ("tee box/y < /dev/null", "tee: box/y: Permission denied"),
        ("dd if=/dev/zero of=box/y bs=1 count=1", "dd: can't open 'box/y': Permission denied"),
        ("truncate -s 5 box/y", "truncate: box/y: open: Permission denied"),
        ("cd box/priv", "sh: 1: cd: can't cd to box/priv"),
        (". box/secret", "sh: 1: .: cannot open box/secret: Permission denied"),
        ("head box/secret", "head: box/secret: Permission denied"),
        ("grep x box/secret", "grep: box/secret: Permission denied"),
        ("wc box/secret", "wc: box/secret: Permission denied"),
        ("find box/priv", "find: box/priv: Permission denied"),
        ("du box/priv", "du: can't open 'box/priv': Permission denied"),
        ("stat box/priv/f", "stat: can't stat 'box/priv/f': Permission denied"),
        ("sed p box/secret", "sed: box/secret: Permission denied"),
        ("tar cf box/y.tar /etc/hostname", "tar: can't open 'box/y.tar': Permission denied"),
        ("box/rootfile", "sh: 1: box/rootfile: Permission denied"),
    ],
)
def test_user_without_rights_gets_the_words_of_each_program(text, words):
    _, errors, code = script(text)
    assert errors.splitlines()[-1] == words
    assert code


def test_shells_have_their_own_words():
    assert script("echo x > /box/y", shell="bash")[1] == "bash: line 1: /box/y: Permission denied\n"


@pytest.mark.parametrize(
    "text",
    [
        "echo x > /tmp/y; cat /tmp/y",
        "mkdir -p /tmp/a/b; touch /tmp/a/b/c; rm -r /tmp/a",
        "echo x > /shared/y; chmod 600 /shared/y; rm /shared/y",
        "cat /box/rootfile /etc/hostname",
    ],
)
def test_user_may_do_what_the_modes_allow(text):
    assert script(text)[1:] == ("", 0)


def test_root_may_do_everything():
    host = container(0, 0)
    text = "cat /box/secret; echo x > /box/priv/f; rm /box/sticky/of-root; chown 5:6 /box/rootfile; stat -c %u:%g /box/rootfile"
    assert script(text, host) == ("x\n5:6\n", "", 0)


def test_new_files_belong_to_the_user_and_to_the_group_of_a_folder_that_sets_it():
    text = "touch /tmp/a /shared/a; mkdir /shared/d; stat -c '%u:%g %a' /tmp/a /shared/a /shared/d"
    assert script(text)[0] == "1000:1000 644\n1000:2000 644\n1000:2000 2755\n"


def test_supplementary_group_has_the_rights_of_its_group():
    host = container(others=(2000,))
    host.files.inodes.put("/box/of-group", FileEntry(data=b"g\n", mode=0o640, group=2000))
    assert script("cat /box/of-group", host)[0] == "g\n"
    other = container()
    other.files.inodes.put("/box/of-group", FileEntry(data=b"g\n", mode=0o640, group=2000))
    assert script("cat /box/of-group", other)[2] == 1


def test_umask_takes_rights_of_new_files():
    text = "umask; umask 077; touch /tmp/a; mkdir /tmp/d; echo > /tmp/r; umask -S; stat -c %a /tmp/a /tmp/d /tmp/r; umask 088"
    output, errors, code = script(text)
    assert output == "0022\nu=rwx,g=,o=\n600\n700\n600\n"
    assert (errors, code) == ("sh: 1: umask: Illegal number: 088\n", 2)


def test_copy_gets_the_mode_without_the_umask_and_a_moved_file_keeps_its_owner():
    host = container(0, 0)
    text = (
        "cd /tmp; echo x > a; chmod 777 a; chown 5:6 a; cp a b; cp -p a c; mv a d; stat -c '%u:%g %a' b c d"
    )
    assert script(text, host)[0] == "0:0 755\n5:6 777\n5:6 777\n"


def test_tests_of_the_shell_tell_of_the_same_rights():
    text = "for o in r w x; do for f in /box/secret /box/rootfile /box/priv /shared; do test -$o $f && echo $o $f; done; done"
    assert script(text)[0] == "r /box/rootfile\nr /shared\nw /shared\nx /shared\n"


READ_ONLY_ROOT = (("/shared", False), ("/dev", False), ("/", True))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo x > /tmp/y", "sh: 1: cannot create /tmp/y: Read-only file system"),
        ("touch /tmp/y", "touch: /tmp/y: Read-only file system"),
        ("mkdir -p /a/b", "mkdir: can't create directory '/a/b': Read-only file system"),
        ("rm /box/rootfile", "rm: can't remove '/box/rootfile': Read-only file system"),
        ("chmod 777 /box/rootfile", "chmod: /box/rootfile: Read-only file system"),
    ],
)
def test_read_only_root_refuses_writes_of_root(text, words):
    assert script(text, container(0, 0, protection=READ_ONLY_ROOT))[1:] == (
        f"{words}\n",
        1 if "echo" not in text else 2,
    )


def test_folders_that_are_not_protected_stay_writable():
    host = container(0, 0, protection=READ_ONLY_ROOT)
    assert script("echo x > /shared/y; [ -w /shared ] && ! [ -w /tmp ] && cat /shared/y", host) == (
        "x\n",
        "",
        0,
    )


def test_file_that_may_not_be_moved_is_not_copied():
    assert script("mv /box/sticky/of-root /tmp/z; ls /tmp /box/sticky | grep -c root")[0] == "1\n"


@pytest.mark.parametrize(
    ("text", "words", "code"),
    [
        ("cat none", "cat: none: No such file or directory", 1),
        ("ls none", "ls: cannot access 'none': No such file or directory", 2),
        ("ls box/priv", "ls: cannot open directory 'box/priv': Permission denied", 2),
        ("mkdir box/y", "mkdir: cannot create directory \u2018box/y\u2019: Permission denied", 1),
        ("rm box/rootfile", "rm: cannot remove 'box/rootfile': Permission denied", 1),
        ("rmdir none", "rmdir: failed to remove 'none': No such file or directory", 1),
        ("cp none x", "cp: cannot stat 'none': No such file or directory", 1),
        ("cp box/rootfile none/x", "cp: cannot create regular file 'none/x': No such file or directory", 1),
        ("cp box/secret /tmp/x", "cp: cannot open 'box/secret' for reading: Permission denied", 1),
        ("mv none x", "mv: cannot stat 'none': No such file or directory", 1),
        ("touch box/y", "touch: cannot touch 'box/y': Permission denied", 1),
        (
            "chmod 777 box/rootfile",
            "chmod: changing permissions of 'box/rootfile': Operation not permitted",
            1,
        ),
        ("head none", "head: cannot open 'none' for reading: No such file or directory", 1),
        ("find none", "find: \u2018none\u2019: No such file or directory", 1),
        ("md5sum none", "md5sum: none: No such file or directory", 1),
        ("ln -s a box/rootfile", "ln: failed to create symbolic link 'box/rootfile': File exists", 1),
        ("cat -Z", "cat: invalid option -- 'Z'\nTry 'cat --help' for more information.", 1),
        ("rm", "rm: missing operand\nTry 'rm --help' for more information.", 1),
    ],
)
def test_programs_of_debian_have_the_words_of_coreutils(text, words, code):
    host = container()
    host.installed = programs_of_image(IMAGES, "debian")
    assert script(text, host) == ("", f"{words}\n", code)


@pytest.mark.parametrize("path", ["", "box/secret", "nosuch"])
@pytest.mark.parametrize("user", [0, 1000])
def test_relative_path_is_no_file(user, path):
    files = FileSystem(FILES, user=ContainerUser(user, user, ()))
    with pytest.raises(NoSuchFile):
        files.entry(path)
