#!/bin/busybox sh
# The first process of a guest: mounts the host's files under an overlay, so that they are there and stay untouched,
# and runs the script that the kernel's command line names. Its exit code is the last line on the console.
bb=/bin/busybox
# On a line of its own, whatever the firmware has left on the console.
echo
echo GUEST_UP
$bb mkdir -p /proc /sys /dev /lower /upper /root
$bb mount -t proc p /proc
$bb mount -t sysfs s /sys
$bb mount -t devtmpfs d /dev
for module in /modules/*; do $bb insmod "$module" 2> /dev/null || echo "module not loaded: $module"; done
$bb mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=262144,cache=loose host /lower
$bb mount -t tmpfs t /upper
$bb mkdir -p /upper/upper /upper/work
$bb mount -t overlay -o lowerdir=/lower,upperdir=/upper/upper,workdir=/upper/work o /root
for folder in proc sys dev; do $bb mount --move /$folder /root/$folder; done
$bb mkdir -p /root/dev/shm
$bb mount -t tmpfs s /root/dev/shm
$bb mount -t tmpfs r /root/run
script=$($bb sed 's/.*fastsockets=\([^ ]*\).*/\1/' /root/proc/cmdline)
HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin $bb chroot /root /bin/bash "$script"
echo "GUEST_EXIT $?"
$bb poweroff -f
