"""The names in the system folders of distributions, which say of a path in an image that adds none that it is absent."""

from collections.abc import Mapping
from typing import Final

from .distributions import BUSYBOX

_OF_RUNTIME: Final = "hostname hosts mtab resolv.conf"
"""What a runtime puts into /etc of each container."""
_ALPINE_ETC: Final = """
    alpine-release apk busybox-paths.d ca-certificates ca-certificates.conf conf.d crontabs fstab gitconfig group hosts init.d inittab inputrc
    issue logrotate.d modprobe.d modules modules-load.d motd network nsswitch.conf opt os-release passwd periodic pkcs11 profile profile.d
    protocols secfixes.d securetty services shadow shells ssh ssl ssl1.1 ssl1.3 sysctl.conf sysctl.d terminfo udhcpc udhcpd.conf xdg
"""
_ALPINE_SHARE: Final = """
    aclocal apk bash bash-completion ca-certificates doc git-core info libtool locale man mime misc p11-kit pkgconfig readline tabset
    terminfo udhcpc zoneinfo
"""
_DEBIAN_ETC: Final = """
    .java .pwd.lock ImageMagick-6 ImageMagick-7 X11 adduser.conf alternatives apache2 apparmor apparmor.d apt bash.bashrc bash_completion.d
    bindresvport.blacklist binfmt.d ca-certificates ca-certificates.conf cloud cron.d cron.daily cron.hourly cron.monthly cron.weekly
    dbus-1 dconf debconf.conf debian_version debuginfod default deluser.conf dhcp dpkg e2scrub.conf emacs environment environment.d
    ethertypes fonts fstab gai.conf gdb glvnd gnutls gprofng.rc groff group group- gshadow gshadow- gss gtk-2.0 gtk-3.0 host.conf init.d
    inputrc iproute2 issue issue.net java kernel ld.so.cache ld.so.conf ld.so.conf.d ldap legal libaudit.conf libnl-3 localtime
    locale.alias locale.gen login.defs logrotate.d lsb-release machine-id magic magic.mime mailcap mailcap.order manpath.config mercurial mime.types
    mke2fs.conf modprobe.d modules-load.d motd mysql netconfig networkd-dispatcher networks nsswitch.conf odbc.ini odbcinst.ini openal
    openmpi opt os-release pam.conf pam.d passwd passwd- perl php pki polkit-1 ppp profile profile.d protocols python python2.7 python3
    python3.10 python3.11 python3.12 python3.13 python3.7 python3.9 rc0.d rc1.d rc2.d rc3.d rc4.d rc5.d rc6.d rcS.d rmt rpc rsyslog.d
    securetty security selinux sensors.d sensors3.conf services sgml shadow shadow- shells skel ssh ssl staff-group-for-usr-local
    subgid subgid- subuid subuid- subversion sudo.conf sudo_logsrvd.conf sudoers sudoers.d sysctl.conf sysctl.d systemd terminfo timezone
    tmpfiles.d ucf.conf udev update-motd.d vdpau_wrapper.cfg vim vulkan wgetrc xattr.conf xdg xml
"""
_DEBIAN_SHARE: Final = """
    GConf ImageMagick-6 ImageMagick-7 PackageKit X11 aclocal adduser alsa application-registry applications apport apps apr-1.0 autoconf
    automake-1.16 automake-1.17 base-files base-passwd bash-completion binfmts bison bug build-essential ca-certificates cmake color
    common-licenses cracklib dbus-1 debconf debhelper debianutils defaults dict distro-info djvu doc doc-base dpkg drirc.d emacs et file
    fontconfig fonts gcc gcc-12 gcc-13 gcc-14 gdb gdk-pixbuf-2.0 gettext gettext-0.21 gettext-0.22 gettext-0.23 ghostscript git-core gitweb glib-2.0
    glvnd gnupg gobject-introspection-1.0 groff gst-plugins-base gtk-doc guile i18n icons icu info initramfs-tools iso-codes java javascript keyrings
    libc-bin libdebuginfod-common libdrm libgcrypt20 liblcms2 libthai libtool lintian locale m4 man man-db maven-repo menu mercurial
    metainfo mime mime-info misc mysql mysql-common nodejs openal openssh openssh-client p11-kit pam pam-configs perl perl-openssl-defaults perl5 php
    pixmaps pkgconfig poppler polkit-1 postgresql-common proj publicsuffix python python-apt python-wheels python3 readline sensible-utils sgml
    sgml-base ss subversion systemd tabset tcltk terminfo themes thumbnailers ucf util-linux util-macros vala vim vulkan xcb xml xml-core
    zoneinfo zsh
"""
_BUSYBOX_ETC: Final = "group localtime network nsswitch.conf passwd shadow ssl"

SYSTEM_FILES: Final[Mapping[str, tuple[tuple[str, frozenset[str]], ...]]] = {
    family: (
        ("/etc/", frozenset(f"{etc} {_OF_RUNTIME}".split())),
        ("/usr/share/", frozenset(share.split())),
    )
    for family, etc, share in (
        ("alpine", _ALPINE_ETC, _ALPINE_SHARE),
        ("debian", _DEBIAN_ETC, _DEBIAN_SHARE),
        (BUSYBOX, _BUSYBOX_ETC, ""),
    )
}
"""The folders with their names by the family of a distribution, also with what compilers and the interpreters of Docker Hub add."""
