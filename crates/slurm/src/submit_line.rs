//! The options of a job that stand on the line of its submission.

/// Options of `sbatch`, `salloc` and `srun` without a value, or whose value is in the same word.
const FLAGS: &str = "bcast bell compress contiguous debugger-test disable-status exact exclusive external-launcher \
    get-user-env help hold ignore-pbs immediate interactive kill-command kill-on-bad-exit label \
    multi-prog nice no-allocate no-bell no-kill no-requeue no-shell oom-kill-step overcommit overlap \
    oversubscribe parsable preserve-env propagate pty quiet quit-on-interrupt reboot requeue resv-ports \
    send-libs spread-job stepmgr test-only unbuffered usage use-min-nodes verbose version whole x11";

/// Short options without a value, or whose value is in the same word.
const SHORT_FLAGS: &str = "EHIKOQVXZhklsuv";

/// Returns the least and the most nodes that a submission asks for, if its line has them (`-N`, `--nodes`).
///
/// `line`: the words of the command, as the accounting has them, without quotation marks. Options in a script are not there.
pub(crate) fn nodes(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let command = words.next()?.rsplit('/').next()?;
    let is_sbatch = command == "sbatch";
    // The components of a job have options of their own.
    let others = !is_sbatch && !matches!(command, "salloc" | "srun");
    if others || words.clone().any(|word| word == ":") {
        return None;
    }
    let mut found = None;
    // The program of the job is the first word that is no option.
    while let Some(option) = words.next().and_then(|word| word.strip_prefix('-')) {
        let value = if let Some(long) = option.strip_prefix('-') {
            match long.split_once('=') {
                // A command follows, with options of its own.
                Some(("wrap", _)) => break,
                Some((name, value)) => (name == "nodes").then_some(value),
                None if long == "wrap" => break,
                None if long.is_empty() => break,
                None if FLAGS.split(' ').any(|flag| flag == long) || is_sbatch && long == "wait" => None,
                None => words.next().filter(|_| long == "nodes"),
            }
        } else {
            // `sbatch -W` waits, and `srun -W` has a time.
            let is_flag = |letter| SHORT_FLAGS.contains(letter) || letter == 'W' && is_sbatch;
            let rest = option.trim_start_matches(is_flag);
            let mut letters = rest.chars();
            match (letters.next(), letters.as_str()) {
                (Some('N'), "") => words.next(),
                (Some('N'), attached) => Some(attached),
                // It has a value of its own.
                (Some(letter), "") if letter.is_ascii_alphabetic() => words.next().and(None),
                _ => None,
            }
        };
        // The last one counts.
        if let Some(value) = value {
            found = range(value);
        }
    }
    found
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
            assert_eq!(nodes(line), expected, "{line}");
        }
    }
}
