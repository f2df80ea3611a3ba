//! The options of a job: those on the line of its submission, and those in its script.

use std::collections::BTreeMap;

use crate::gpu_types;

/// Options of `sbatch`, `salloc` and `srun` without a value, or whose value is in the same word.
const FLAGS: &str = "bcast bell compress contiguous debugger-test disable-status exact exclusive external-launcher \
    get-user-env help hold ignore-pbs immediate interactive kill-command kill-on-bad-exit label \
    multi-prog nice no-allocate no-bell no-kill no-requeue no-shell oom-kill-step overcommit overlap \
    oversubscribe parsable preserve-env propagate pty quiet quit-on-interrupt reboot requeue resv-ports \
    send-libs spread-job stepmgr test-only unbuffered usage use-min-nodes verbose version whole x11";

/// Short options without a value, or whose value is in the same word.
const SHORT_FLAGS: &str = "EHIKOQVXZhklsuv";

/// The options of a submission that the accounting has nowhere else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Submission {
    /// The least and the most nodes (`-N`, `--nodes`).
    pub(crate) nodes: Option<(u64, u64)>,
    /// The types of GPUs, of each of which there is one at least (`--gres`, `--gpus`).
    /// Absent without such an option.
    pub(crate) gpu_types: Option<BTreeMap<String, u64>>,
    /// Whether it has its nodes to itself (`--exclusive` without a value).
    pub(crate) exclusive: bool,
    /// Whether a script may have further options.
    pub(crate) has_script: bool,
}

impl Submission {
    /// Reads the words of a command, as the accounting has them, without quotation marks.
    pub(crate) fn of_line(line: &str) -> Submission {
        let words = line.split_ascii_whitespace();
        let command = words.clone().next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
        let is_sbatch = command == "sbatch";
        // The components of a job have options of their own.
        let others = !is_sbatch && !matches!(command, "salloc" | "srun");
        if others || words.clone().any(|word| word == ":") {
            return Submission::default();
        }
        let mut submission = Submission { has_script: is_sbatch, ..Submission::default() };
        submission.read(words.skip(1), is_sbatch);
        submission
    }

    /// Adds the options in a script. Those of the line come first.
    pub(crate) fn add_script(&mut self, script: &str) {
        let mut of_script = Submission::default();
        // Options end at the first command.
        let head = script.lines().take_while(|line| line.trim().is_empty() || line.starts_with('#'));
        for options in head.filter_map(|line| line.strip_prefix("#SBATCH")) {
            let options = options.replace(['"', '\''], "");
            let words = options.split_ascii_whitespace().take_while(|word| !word.starts_with('#'));
            of_script.read(words, true);
        }
        self.nodes = self.nodes.or(of_script.nodes);
        self.exclusive |= of_script.exclusive;
        self.gpu_types = self.gpu_types.take().or(of_script.gpu_types);
    }

    fn read<'a>(&mut self, mut words: impl Iterator<Item = &'a str>, is_sbatch: bool) {
        // The program of the job is the first word that is no option.
        while let Some(option) = words.next().and_then(|word| word.strip_prefix('-')) {
            let (name, value) = if let Some(long) = option.strip_prefix('-') {
                match long.split_once('=') {
                    // A command follows, with options of its own.
                    Some(("wrap", _)) => break,
                    Some((name, value)) => (name, Some(value)),
                    None if long == "wrap" || long.is_empty() => break,
                    None if FLAGS.split(' ').any(|flag| flag == long) || is_sbatch && long == "wait" => {
                        (long, None)
                    }
                    None => (long, words.next()),
                }
            } else {
                // `sbatch -W` waits, and `srun -W` has a time.
                let is_flag = |letter| SHORT_FLAGS.contains(letter) || letter == 'W' && is_sbatch;
                let rest = option.trim_start_matches(is_flag);
                let split = rest.char_indices().nth(1).map_or(rest.len(), |(at, _)| at);
                match rest.split_at(split) {
                    // It has a value of its own.
                    (letter, "") if letter.starts_with(|letter: char| letter.is_ascii_alphabetic()) => {
                        (letter, words.next())
                    }
                    (letter, attached) => (letter, Some(attached)),
                }
            };
            // The last one counts.
            match (name, value) {
                ("N" | "nodes", Some(value)) => self.nodes = range(value),
                ("exclusive", None) => self.exclusive = true,
                ("gres" | "gpus-per-node", Some(value)) => {
                    let prefix = if name == "gres" { "" } else { "gpu:" };
                    self.gpu_types = Some(one_of_each(&format!("{prefix}{value}")));
                }
                ("G" | "gpus" | "gpus-per-task" | "gpus-per-socket", Some(value)) => {
                    self.gpu_types = Some(one_of_each(&format!("gpu:{value}")));
                }
                _ => {}
            }
        }
    }
}

/// Returns the types of GPUs in a list, with one of each.
pub(crate) fn one_of_each(list: &str) -> BTreeMap<String, u64> {
    gpu_types(list).into_keys().map(|name| (name, 1)).collect()
}

/// Reads `LEAST-MOST`, or a number that is both.
fn range(text: &str) -> Option<(u64, u64)> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    Some((least.parse().ok()?, most.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_of_a_submission() {
        for (line, expected) in [
            ("sbatch --quiet --mem=32000 -N1-1 --ntasks=1 --wrap=exec sleep 30", Some((1, 1))),
            ("sbatch -N 2 -n8 job.sh", Some((2, 2))),
            ("srun --nodes=1-4 -l hostname", Some((1, 4))),
            ("/usr/bin/salloc --nodes 3", Some((3, 3))),
            ("sbatch -HN1 job.sh", Some((1, 1))),
            ("sbatch -N1 -N2 job.sh", Some((2, 2))),
            // The values of other options, and the arguments of the program.
            ("sbatch -J -N1 job.sh", None),
            ("sbatch --job-name -N1 job.sh -N2", None),
            ("sbatch --quiet job.sh -N1", None),
            ("sbatch -W job.sh -N1", None),
            ("srun -W -N1 -N3 hostname", Some((3, 3))),
            ("sbatch -I5 -N2 job.sh", Some((2, 2))),
            ("sbatch -- -N1", None),
            ("sbatch -n 64 --wrap=srun -N1 -n64 ./a", None),
            ("sbatch -N2 --wrap srun -N1 ./a", Some((2, 2))),
            ("sbatch -n1 -N1 : -n 64 job.sh", None),
            ("qsub -N 1 job.sh", None),
            ("srun --wait 60 -N1 ./a", Some((1, 1))),
            ("sbatch --wait -N1 job.sh", Some((1, 1))),
            ("salloc --x11 -N1 bash", Some((1, 1))),
            ("srun -E -N1 ./a", Some((1, 1))),
            ("srun -N1 -N1-4:2 ./a", None),
            // Numbers that are no range.
            ("sbatch -N2,4 job.sh", None),
            ("sbatch -N1k job.sh", None),
            ("", None),
        ] {
            assert_eq!(Submission::of_line(line).nodes, expected, "{line}");
        }
    }

    #[test]
    fn a_submission_may_ask_for_whole_nodes() {
        let of = |line: &str, script: &str| {
            let mut submission = Submission::of_line(line);
            submission.add_script(script);
            submission.exclusive
        };
        assert!(of("sbatch -p low --exclusive --ntasks=4 --wrap=exec sleep 30", ""));
        assert!(of("sbatch job.sh", "#!/bin/sh\n#SBATCH --exclusive\n"));
        assert!(!of("sbatch --exclusive=user job.sh", ""), "users share no node, but their jobs do");
        assert!(!of("sbatch job.sh --exclusive", "echo\n#SBATCH --exclusive\n"));
    }

    #[test]
    fn the_types_of_gpus_of_a_submission() {
        for (line, types) in [
            ("sbatch --gres=gpu:a100:2,nvme:1 job.sh", "a100"),
            ("sbatch --gres gpu:2 job.sh --gpus=t4:1", ""),
            ("srun -G t4:3 ./a", "t4"),
            ("srun -Gt4:3 ./a", "t4"),
            ("sbatch --gpus-per-node=h100:4 job.sh", "h100"),
            ("sbatch --gpus-per-task a100:1 --wrap=--gpus=t4:1", "a100"),
            ("sbatch --gpus=4 job.sh", ""),
        ] {
            let read: Vec<String> =
                Submission::of_line(line).gpu_types.into_iter().flatten().map(|(name, _)| name).collect();
            assert_eq!(read.join(" "), types, "{line}");
        }
    }

    #[test]
    fn options_in_a_script_come_behind_those_of_the_line() {
        let script = "#!/bin/bash\n#SBATCH -n 4 --nodes=2-3  # as the manual says -N9\n\n#SBATCH --gres=\"gpu:a100:1\"\n\
            ##SBATCH -N7\n# a comment\ncd /\n#SBATCH -N8\n";
        let of = |line: &str| {
            let mut submission = Submission::of_line(line);
            submission.add_script(script);
            (
                submission.nodes,
                submission.gpu_types.unwrap_or_default().into_keys().collect::<Vec<_>>().join(" "),
            )
        };
        assert_eq!(of("sbatch job.sh"), (Some((2, 3)), "a100".to_owned()));
        assert_eq!(of("sbatch --gres=gpu:2 job.sh"), (Some((2, 3)), String::new()));
        assert_eq!(of("sbatch -N1 --gres=gpu:t4:1 job.sh"), (Some((1, 1)), "t4".to_owned()));
        assert!(
            Submission::of_line("sbatch job.sh").has_script
                && !Submission::of_line("srun -n1 ./a").has_script
        );
    }
}
