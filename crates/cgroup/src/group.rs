//! One control group: its files, its processes, its children.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open, statfs};

use crate::CgroupError;

/// The type of the file system, as in `linux/magic.h`.
const CGROUP2_MAGIC: i64 = 0x6367_7270;

/// A control group. The value is only a path: the group may be removed at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    path: PathBuf,
}

impl Group {
    /// Returns the group of a folder, which is not accessed.
    pub(crate) fn at(path: &Path) -> Group {
        Group { path: path.to_owned() }
    }

    /// Returns the group of a folder.
    ///
    /// # Errors
    /// [`CgroupError::NoGroup`] if the folder is in another file system, [`CgroupError::Io`] if it does not exist.
    pub fn open(path: &Path) -> Result<Group, CgroupError> {
        let found = statfs(path).map_err(|error| CgroupError::io(path)(error.into()))?;
        #[allow(clippy::useless_conversion, reason = "the type differs between architectures")]
        if i64::from(found.f_type) == CGROUP2_MAGIC {
            Ok(Group::at(path))
        } else {
            Err(CgroupError::NoGroup(path.to_owned()))
        }
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a child, whether or not it exists.
    #[must_use]
    pub fn child(&self, name: &str) -> Group {
        Group { path: self.path.join(name) }
    }

    /// Returns the group above. Returns `None` for the root of the hierarchy.
    pub(crate) fn parent(&self) -> Option<Group> {
        Group::open(self.path.parent()?).ok()
    }

    /// Returns whether the group has a guarantee of memory; the root of the hierarchy has none.
    pub(crate) fn has_memory(&self) -> bool {
        self.path.join("memory.min").exists()
    }

    /// Creates a child. Returns it also if it exists.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn create(&self, name: &str) -> Result<Group, CgroupError> {
        let child = self.child(name);
        child.make()?;
        Ok(child)
    }

    /// Creates this group, unless it exists.
    pub(crate) fn make(&self) -> Result<(), CgroupError> {
        match fs::create_dir(&self.path) {
            // Whatever the umask is: a daemon without rights reads what its executor has created.
            Ok(()) => fs::set_permissions(&self.path, Permissions::from_mode(0o755)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
        .map_err(CgroupError::io(&self.path))
    }

    /// Returns the children.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn children(&self) -> Result<Vec<Group>, CgroupError> {
        let mut children = vec![];
        for entry in fs::read_dir(&self.path).map_err(CgroupError::io(&self.path))? {
            let entry = entry.map_err(CgroupError::io(&self.path))?;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                children.push(Group { path: entry.path() });
            }
        }
        children.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(children)
    }

    /// Reads a file, without the white space at its end.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn read(&self, file: &str) -> Result<String, CgroupError> {
        let path = self.path.join(file);
        let text = fs::read_to_string(&path).map_err(CgroupError::io(&path))?;
        Ok(text.trim_end().to_owned())
    }

    /// Returns the value of a key in a file of `key value` lines, such as `cgroup.events`.
    ///
    /// # Errors
    /// [`CgroupError::Io`]; [`CgroupError::Unknown`] if the key is missing or its value is no number.
    pub fn value(&self, file: &str, key: &str) -> Result<u64, CgroupError> {
        let text = self.read(file)?;
        let found = text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
        found.ok_or_else(|| CgroupError::Unknown { path: self.path.join(file), text })
    }

    /// Writes a file.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn write(&self, file: &str, text: &str) -> Result<(), CgroupError> {
        let path = self.path.join(file);
        // One call of `write`: the kernel takes each for a whole command. Never creates a file.
        let written = fs::OpenOptions::new().write(true).open(&path);
        written
            .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
            .map_err(CgroupError::io(&path))
    }

    /// Opens a file that a poll reports as changed (`POLLPRI`), such as `cgroup.events`.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn watch(&self, file: &str) -> Result<OwnedFd, CgroupError> {
        let path = self.path.join(file);
        open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| CgroupError::io(&path)(error.into()))
    }

    /// Returns the controllers that this group may give to its children.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn controllers(&self) -> Result<Vec<String>, CgroupError> {
        Ok(self
            .read("cgroup.controllers")?
            .split(' ')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect())
    }

    /// Gives those of the controllers to the children that this group has.
    ///
    /// # Errors
    /// [`CgroupError::Io`] if the kernel refuses one that the group has, for example because the group has processes.
    pub fn enable(&self, controllers: &[&str]) -> Result<(), CgroupError> {
        let has = self.controllers()?;
        for name in controllers.iter().filter(|name| has.iter().any(|one| one == *name)) {
            self.write("cgroup.subtree_control", &format!("+{name}"))?;
        }
        Ok(())
    }

    /// Moves a process into the group. The number 0 is the calling process.
    ///
    /// # Errors
    /// [`CgroupError::Io`]: the process has ended, the group has children with controllers, or a right is missing.
    pub fn add(&self, process: u32) -> Result<(), CgroupError> {
        self.write("cgroup.procs", &process.to_string())
    }

    /// Returns the processes of this group, without those of its children.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn processes(&self) -> Result<Vec<u32>, CgroupError> {
        Ok(self.read("cgroup.procs")?.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Removes the group and its children. They must have no process.
    ///
    /// # Errors
    /// [`CgroupError::Io`] if there are processes. A group that does not exist is no error.
    pub fn remove(&self) -> Result<(), CgroupError> {
        let children = match self.children() {
            Err(error) if error.is_missing() => return Ok(()),
            other => other?,
        };
        for child in children {
            child.remove()?;
        }
        match fs::remove_dir(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(CgroupError::io(&self.path)(error)),
            _ => Ok(()),
        }
    }
}
