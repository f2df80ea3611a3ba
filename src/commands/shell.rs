//! `miserly completions` and `miserly man`: files for shells and manual pages.

use anyhow::bail;
use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::output::print;

pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "miserly", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub(crate) fn man(args: &ManArgs) -> anyhow::Result<()> {
    let mut program = Cli::command();
    program.build();
    let mut command = &program;
    for name in &args.commands {
        let Some(inner) = command.find_subcommand(name) else {
            bail!("no command {name:?}; {} --help lists them", command.get_bin_name().unwrap_or("miserly"));
        };
        command = inner;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    print(&String::from_utf8_lossy(&page))
}
