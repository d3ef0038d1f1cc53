//! What the predefined functions of reductions should give, one element at a time, by names and bytes: written down a second time, with
//! nothing of the library's.

#![allow(dead_code, reason = "each test program uses a part")]

/// Bytes of a value of a kind.
fn width(kind: &str) -> usize {
    match kind {
        "i8" | "u8" | "b8" => 1,
        "i16" | "u16" | "f16" | "bf16" => 2,
        "i" | "u32" | "s" => 4,
        "i64" | "u64" | "d" | "c" => 8,
        "z" | "f80" => 16,
        _ => panic!("no kind {kind}"),
    }
}

fn with_index(operation: &str) -> bool {
    operation == "maxloc" || operation == "minloc"
}

/// Bytes of an element: as C lays out `struct { T value; int index; }` where there is an index.
pub fn size(kind: &str, operation: &str) -> usize {
    let value = width(kind);
    if with_index(operation) { (value.max(4) + 4).next_multiple_of(value.max(4)) } else { value }
}

/// An element that depends on a number. Values come again, so that there are ties. Sums and products of floats are finite and no NaNs,
/// whose bits no rule says; of what is compared every tenth is one if `nan`.
pub fn element(kind: &str, operation: &str, x: u64, nan: bool) -> Vec<u8> {
    let width = width(kind);
    let whole = (x >> 20) % 2001;
    let float = |unit: f64| (whole as f64 - 1000.0) / unit;
    let compared = ["maxval", "minval", "maxloc", "minloc", "amax", "amin"].contains(&operation);
    let special = match (x >> 50) % 10 {
        0 if compared && nan => f64::NAN,
        1 if compared => f64::INFINITY,
        2 => -0.0,
        3 => 0.0,
        _ if compared => float(50.0).round(),
        _ => float(3.0),
    };
    let mut bytes = match kind {
        "s" => (special as f32).to_ne_bytes().to_vec(),
        "d" => special.to_ne_bytes().to_vec(),
        "c" => [float(7.0) as f32, special as f32].map(f32::to_ne_bytes).concat(),
        "z" => [if compared { float(300.0).round() } else { float(7.0) }, special].map(f64::to_ne_bytes).concat(),
        "f16" => short(float([1.0, 3.0, 0.03, 1e6][(x % 4) as usize]), 10, 5).to_ne_bytes().to_vec(),
        "bf16" => short(float([1.0, 3.0, 1e-30, 1e38][(x % 4) as usize]), 7, 8).to_ne_bytes().to_vec(),
        // Sums and products of some ranks that the x87 has exactly, and a double does not.
        "f80" => long(match operation {
            "sum" => whole as i128 + (x % 5) as i128 * ((1 << 56) + 1) - (1 << 57),
            _ => whole as i128 % 7 * 2 - 7,
        }),
        // All bits, or few values.
        _ if x.is_multiple_of(3) => (x % 2 * (x >> 30)).to_ne_bytes()[..width].to_vec(),
        _ => (x >> 17).to_ne_bytes()[..width].to_vec(),
    };
    if with_index(operation) {
        bytes.resize(size(kind, operation), 0);
        bytes[width.max(4)..][..4].copy_from_slice(&((x >> 40) as i32 % 7).to_ne_bytes());
    }
    bytes
}

/// The number of 16 bits that is nearest, with a fraction and an exponent of so many bits.
fn short(x: f64, fraction: i32, exponent: i32) -> u16 {
    let bias = (1 << (exponent - 1)) - 1;
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let largest = (1 << exponent) - 1;
    if x.is_infinite() {
        return sign | (largest << fraction) as u16;
    }
    let mut e = (1 - bias).max(if x == 0.0 { i32::MIN } else { x.abs().log2().floor() as i32 });
    let mut units = (x.abs() / f64::from(e - fraction).exp2()).round_ties_even() as u32;
    if units == 2 << fraction {
        (units, e) = (1 << fraction, e + 1);
    }
    // The smallest numbers have the exponent of the least normal ones, and not its bit.
    let place = if units < 1 << fraction { 0 } else { e + bias };
    sign | if place >= largest {
        largest << fraction
    } else {
        (place << fraction) | (units as i32 & ((1 << fraction) - 1))
    } as u16
}

/// What the bits of such a number say.
fn of_short(bits: u16, fraction: i32, exponent: i32) -> f64 {
    let (bias, place) = ((1 << (exponent - 1)) - 1, i32::from(bits & 0x7fff) >> fraction);
    let units = f64::from(bits & ((1 << fraction) - 1)) + if place > 0 { f64::from(1 << fraction) } else { 0.0 };
    let size = if place == (1 << exponent) - 1 {
        f64::INFINITY
    } else {
        units * f64::from(place.max(1) - bias - fraction).exp2()
    };
    if bits & 0x8000 != 0 { -size } else { size }
}

/// A whole number of up to 64 bits as the x87 has it.
fn long(x: i128) -> Vec<u8> {
    let size = x.unsigned_abs() as u64;
    let (shift, sign) = (size.leading_zeros(), if x < 0 { 0x8000 } else { 0 });
    let exponent: u16 = if x == 0 { 0 } else { sign | (16383 + 63 - shift as u16) };
    let mut bytes = size.checked_shl(shift).unwrap_or(0).to_ne_bytes().to_vec();
    bytes.extend(exponent.to_ne_bytes());
    bytes.extend([0; 6]);
    bytes
}

fn of_long(bytes: &[u8]) -> i128 {
    let fraction = u64::from_ne_bytes(bytes[..8].try_into().unwrap());
    let exponent = u16::from_ne_bytes(bytes[8..10].try_into().unwrap());
    let size = if fraction == 0 { 0 } else { i128::from(fraction >> (16383 + 63 - (exponent & 0x7fff))) };
    if exponent & 0x8000 != 0 { -size } else { size }
}

/// a ∘ b
pub fn combined(kind: &str, operation: &str, a: &[u8], b: &[u8]) -> Vec<u8> {
    if with_index(operation) {
        let index = |v: &[u8]| i32::from_ne_bytes(v[width(kind).max(4)..][..4].try_into().unwrap());
        let second = match compare(kind, a, b) {
            Some(order) if order.is_eq() => index(b) < index(a),
            Some(order) => order.is_lt() == (operation == "maxloc"),
            // Of two that are no numbers the lower index, else the one that is none.
            None if is_nan(kind, a) && is_nan(kind, b) => index(b) < index(a),
            None => is_nan(kind, b),
        };
        return if second { b } else { a }.to_vec();
    }
    let f32_at = |v: &[u8], k: usize| f32::from_ne_bytes(v[4 * k..][..4].try_into().unwrap());
    let f64_at = |v: &[u8], k: usize| f64::from_ne_bytes(v[8 * k..][..8].try_into().unwrap());
    match (kind, operation) {
        ("s", "sum") => (f32_at(a, 0) + f32_at(b, 0)).to_ne_bytes().to_vec(),
        ("s", "prod") => (f32_at(a, 0) * f32_at(b, 0)).to_ne_bytes().to_vec(),
        ("d", "sum") => (f64_at(a, 0) + f64_at(b, 0)).to_ne_bytes().to_vec(),
        ("d", "prod") => (f64_at(a, 0) * f64_at(b, 0)).to_ne_bytes().to_vec(),
        ("c", "sum") => [0, 1].map(|k| (f32_at(a, k) + f32_at(b, k)).to_ne_bytes()).concat(),
        ("z", "sum") => [0, 1].map(|k| (f64_at(a, k) + f64_at(b, k)).to_ne_bytes()).concat(),
        ("c", "prod") => {
            let [x, y, u, v] = [f32_at(a, 0), f32_at(a, 1), f32_at(b, 0), f32_at(b, 1)];
            [x * u - y * v, x * v + y * u].map(f32::to_ne_bytes).concat()
        }
        ("z", "prod") => {
            let [x, y, u, v] = [f64_at(a, 0), f64_at(a, 1), f64_at(b, 0), f64_at(b, 1)];
            [x * u - y * v, x * v + y * u].map(f64::to_ne_bytes).concat()
        }
        ("f16", "sum") | ("bf16", "sum") => {
            let (fraction, exponent) = if kind == "f16" { (10, 5) } else { (7, 8) };
            let x = |v: &[u8]| of_short(u16::from_ne_bytes(v.try_into().unwrap()), fraction, exponent);
            short(x(a) + x(b), fraction, exponent).to_ne_bytes().to_vec()
        }
        ("f80", "sum") => long(of_long(a) + of_long(b)),
        ("f80", "prod") => long(of_long(a) * of_long(b)),
        (_, "maxval" | "minval") => {
            let second = match compare(kind, a, b) {
                // Of two zeros +0 is the larger one.
                Some(order) if order.is_eq() => {
                    is_negative(kind, a) != is_negative(kind, b) && is_negative(kind, a) == (operation == "maxval")
                }
                Some(order) => order.is_lt() == (operation == "maxval"),
                None => is_nan(kind, b),
            };
            if second { b } else { a }.to_vec()
        }
        (_, "amax" | "amin") => by_size(kind, a, b, operation == "amax"),
        _ => of_integers(operation, whole(kind, a), whole(kind, b)).to_ne_bytes()[..width(kind)].to_vec(),
    }
}

/// An integer.
fn whole(kind: &str, v: &[u8]) -> i128 {
    let width = width(kind);
    let mut bytes = [if kind.starts_with('i') && v[width - 1] >= 0x80 { 0xff } else { 0 }; 16];
    bytes[..width].copy_from_slice(&v[..width]);
    i128::from_ne_bytes(bytes)
}

fn of_integers(operation: &str, a: i128, b: i128) -> i128 {
    match operation {
        "sum" => a.wrapping_add(b),
        "prod" => a.wrapping_mul(b),
        "land" => i128::from(a != 0 && b != 0),
        "lor" => i128::from(a != 0 || b != 0),
        "lxor" => i128::from((a != 0) != (b != 0)),
        "band" => a & b,
        "bor" => a | b,
        "bxor" => a ^ b,
        _ => panic!("no operation {operation}"),
    }
}

fn real(kind: &str, v: &[u8]) -> f64 {
    match kind {
        "s" => f64::from(f32::from_ne_bytes(v[..4].try_into().unwrap())),
        _ => f64::from_ne_bytes(v[..8].try_into().unwrap()),
    }
}

fn compare(kind: &str, a: &[u8], b: &[u8]) -> Option<std::cmp::Ordering> {
    match kind {
        "s" | "d" => real(kind, a).partial_cmp(&real(kind, b)),
        "f80" => Some(of_long(a).cmp(&of_long(b))),
        _ => Some(whole(kind, a).cmp(&whole(kind, b))),
    }
}

fn is_nan(kind: &str, v: &[u8]) -> bool {
    matches!(kind, "s" | "d") && real(kind, v).is_nan()
}

fn is_negative(kind: &str, v: &[u8]) -> bool {
    matches!(kind, "s" | "d") && real(kind, v).is_sign_negative()
}

/// The one with the larger (smaller) absolute value, of equal ones the larger (smaller).
fn by_size(kind: &str, a: &[u8], b: &[u8], larger: bool) -> Vec<u8> {
    // What is compared, one after the other.
    let keys = |v: &[u8]| -> Vec<f64> {
        match kind {
            "i" => vec![whole(kind, v).unsigned_abs() as f64, whole(kind, v) as f64],
            "s" | "d" => vec![real(kind, v).abs(), real(kind, v)],
            "c" => {
                let [x, y] = [0, 4].map(|at| f32::from_ne_bytes(v[at..][..4].try_into().unwrap()));
                vec![f64::from(x.abs() + y.abs()), f64::from(x), f64::from(y)]
            }
            _ => {
                let [x, y] = [0, 8].map(|at| f64::from_ne_bytes(v[at..][..8].try_into().unwrap()));
                vec![x.abs() + y.abs(), x, y]
            }
        }
    };
    let (x, y) = (keys(a), keys(b));
    let second = y[0].is_nan() || !x[0].is_nan() && if larger { y > x } else { y < x };
    if second { b } else { a }.to_vec()
}
