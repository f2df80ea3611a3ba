//! `miserly slurm check`: whether the commands of a cluster mean what this program reads.

use anyhow::bail;
use miserly_drive::CommentField;
use miserly_slurm::{Check, CommandCheck, Form, Standing};

use crate::args::SlurmCheckArgs;
use crate::commands::live::{counted, table};
use crate::output::{print, print_json};

pub(super) fn check(args: &SlurmCheckArgs) -> anyhow::Result<()> {
    let slurm = args.cluster.slurm();
    let mut check = Check::run(&slurm, args.probe);
    if check.version.is_some() {
        let user = rustix::process::getuid().as_raw();
        check.driver_writes =
            CommentField::for_user(&slurm, &check.configuration, user).map(CommentField::key);
    }
    if args.json {
        print_json(&check)?;
    } else {
        print(&text(&check))?;
    }
    if !check.is_clean() {
        bail!(
            "the commands of this cluster fail, or do not agree: do not trust forecast, twin and shadow there, and do not drive it"
        );
    }
    Ok(())
}

fn text(check: &Check) -> String {
    let version = check.version.as_deref().unwrap_or("of an unknown version");
    let standing = match check.standing {
        Standing::Tested => "it is tested",
        Standing::Known => "it is not tested, and its forms are known from its sources",
        Standing::Unknown => "its forms are unknown, and read as those of the newest version that is known",
    };
    let mut text = format!("Slurm {version}: {standing}\n\n");
    let command = |command: &CommandCheck| {
        let CommandCheck { command, shown, problem, is_optional } = command;
        let answer = match problem {
            None => format!("shows {shown}"),
            Some(problem) if *is_optional => format!("not there: {problem}"),
            Some(problem) => format!("fails: {problem}"),
        };
        vec![(*command).to_owned(), answer]
    };
    text += &table(&["COMMAND", "ANSWER"], &[], check.commands.iter().map(command));
    let row = |form: &Form| [form.what, form.prints, form.read_as].map(str::to_owned).to_vec();
    text += &format!("\n{}", table(&["THING", "PRINTED AS", "READ AS"], &[], check.forms.iter().map(row)));
    text += &format!(
        "\n{} compared between squeue and scontrol, {} of them with nodes to themselves; {} that run between squeue and sacct\n",
        counted(check.described, "job"),
        check.exclusive,
        counted(check.accounted, "job"),
    );
    if !check.test_only.is_empty() {
        text += &format!("sbatch --test-only of one processor: {}\n", check.test_only);
    }
    text += match check.driver_writes {
        Some("AdminComment") => {
            "a driver of this account writes promises into AdminComment: the comments of users stay as they are\n"
        }
        Some(_) => {
            "a driver of this account writes promises into Comment, behind the text of the user: it is no administrator\n"
        }
        None => {
            "where a driver of this account writes promises is not known: the accounting gives no answer\n"
        }
    };
    if let Some(probe) = check.probe {
        text += &format!("job {probe} was submitted as a probe, held, and cancelled\n");
    }
    if check.differences.is_empty() {
        text += "no difference\n";
    }
    for difference in &check.differences {
        text += &format!("DIFFERS: {difference}\n");
    }
    text
}
