#!/usr/bin/perl
# SPDX-License-Identifier: LGPL-2.1-or-later
# Asks QEMU monitors one thing each, for the scenario runner in the emulated host, where there is no
# Python. It has no line in common with numaherd's own QMP client.
#
#   monitor.pl COMMAND SOCKET...
#
# Prints what each returned, one JSON line per socket. Exit status not 0 if one refused, or did not
# answer.
use strict;
use warnings;
use IO::Socket::UNIX;

my $ANSWER_S = 20;

my ($command, @paths) = @ARGV;
for my $path (@paths) {
    local $SIG{ALRM} = sub { die "$path: no answer to '$command' within $ANSWER_S s\n" };
    alarm $ANSWER_S;
    my $socket = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!\n";
    my $answer;
    for my $execute ('qmp_capabilities', $command) {
        print $socket qq({"execute": "$execute"}\n);
        # before it come a greeting and, at any time, events
        do {
            $answer = <$socket>;
            die "$path: the monitor closed\n" unless defined $answer;
        } until $answer =~ /^\{"(?:return|error)":/;
        die "$path: $execute: $answer" if $answer =~ /^\{"error"/;
    }
    alarm 0;
    $answer =~ s/\r//;
    print $answer;
}
