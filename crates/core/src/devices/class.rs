//! Classes of devices, and the devices of a host by class.

/// A class of devices. All devices of a class are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceClass {
    /// The type by which requests name it, such as `a100` or `1g.10gb`.
    pub name: String,
    /// The memory of one device, in kB. `None` if it is unknown.
    pub memory: Option<u64>,
    /// The type of the device of which each is a part. `None` for whole devices.
    pub part_of: Option<String>,
    /// Whether jobs may share a device by its memory.
    pub shares: bool,
}

impl DeviceClass {
    /// Returns whether requests name the class by this type, in any case.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Returns whether each device has at least this memory. Unknown memory is no memory.
    pub fn has_memory(&self, memory: u64) -> bool {
        self.memory.is_some_and(|has| has >= memory)
    }
}

/// Devices of one class on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceGroup {
    /// Their class.
    pub class: DeviceClass,
    /// Their number, at most [`DeviceGroup::MOST`].
    pub count: u32,
    /// The number of them on the same physical device: 1 for whole devices.
    pub parts: u32,
}

impl DeviceGroup {
    /// The largest number of devices in a group.
    pub const MOST: u32 = 64;
}

/// A set of classes of a [`DeviceTable`](super::DeviceTable).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassSet(u64);

impl ClassSet {
    /// The largest number of classes.
    pub const MOST: usize = 64;

    /// Returns the set of the classes with these positions, one bit each.
    pub const fn from_bits(bits: u64) -> ClassSet {
        ClassSet(bits)
    }

    /// Returns the positions of the classes, one bit each.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the set with the class at this position of the table.
    #[must_use]
    pub const fn with(self, class: usize) -> ClassSet {
        ClassSet(self.0 | 1 << (class % ClassSet::MOST))
    }

    /// Returns whether the class at this position is in the set.
    pub const fn has(self, class: usize) -> bool {
        class < ClassSet::MOST && self.0 >> class & 1 == 1
    }

    /// Returns whether the set has no class.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
