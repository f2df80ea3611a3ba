//! The parts of the program that a build may leave out.

use crate::help;

/// A part of the program: a feature of the package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    /// The name of the feature.
    pub(crate) name: &'static str,
    /// Whether this build has it.
    is_built: bool,
}

/// The daemon, and the commands that talk to it.
pub(crate) const DAEMON: Feature = Feature { name: "daemon", is_built: cfg!(feature = "daemon") };

/// The live page and the terminal.
pub(crate) const PAGE: Feature = Feature { name: "page", is_built: cfg!(feature = "page") };

/// Slurm clusters.
pub(crate) const SLURM: Feature = Feature { name: "slurm", is_built: cfg!(feature = "slurm") };

/// The paper whose runs are real processes.
pub(crate) const MEASURED: Feature = Feature { name: "measured", is_built: cfg!(feature = "measured") };

/// All parts that a build may leave out.
pub(crate) const ALL: [Feature; 4] = [DAEMON, PAGE, SLURM, MEASURED];

impl Feature {
    /// Returns how to get this part beside those that are built, if the build has not got it.
    pub(crate) fn how_to_get(self) -> Option<String> {
        let built = ALL.iter().filter(|feature| feature.is_built || feature.name == self.name);
        let names: Vec<&str> = built.map(|feature| feature.name).collect();
        (!self.is_built).then(|| {
            format!(
                "this program was built without it; build it with: cargo build --release --features {} (or full, for all parts)",
                names.join(",")
            )
        })
    }

    /// Returns the error of an option that needs this part.
    #[allow(dead_code)] // A full build has all parts.
    pub(crate) fn absent(self, what: &str) -> anyhow::Error {
        anyhow::anyhow!("{what}: {}", self.how_to_get().unwrap_or_default())
    }
}

/// Returns the part that a command is in, if the build has not got it.
pub(crate) fn of_command(name: &str) -> Option<Feature> {
    let part = help::part_of(name)?;
    ALL.into_iter().find(|feature| !feature.is_built && feature.name == part)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    /// Each command has a part, and a build has the commands of its parts.
    #[test]
    fn the_commands_of_a_part_are_there_if_it_is_built() {
        let command = Cli::command();
        let there: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        for name in help::EXAMPLES.lines().filter_map(|line| line.split(' ').nth(1)) {
            let Some(part) = help::part_of(name) else { continue };
            let is_built = ALL.iter().find(|feature| feature.name == part).is_none_or(|of| of.is_built);
            assert_eq!(there.contains(&name), is_built, "{name}");
        }
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        for name in shown.map(clap::Command::get_name) {
            assert!(help::part_of(name).is_some(), "{name} is in no part");
        }
    }
}
