package kernel

// lanes512 needs AVX-512 F.
var lanes512 = &laneKernels{
	ops: [opPair + pairs]func(*laneWords){
		opCopy: copy512, Neg: neg512, Abs: abs512, Sqrt: sqrt512, Rsqrt: rsqrt512, Exp: exp512, Log: log512,
		Tanh: tanh512, Erf: erf512, Logistic: logistic512, Sign: sign512, Floor: floor512, Ceil: ceil512,
		Round: round512, IsFinite: finite512, IsNaN: nan512, INeg: ineg512, IAbs: iabs512, Not: not512,
		IntToFloat: tofloat512, FloatToInt: toint512, Add: add512, Sub: sub512, Mul: mul512, Div: div512,
		Max: max512, Min: min512, Eq: eq512, Ne: ne512, Lt: lt512, Le: le512, Gt: gt512, Ge: ge512,
		IAdd: iadd512, ISub: isub512, IMul: imul512, IMax: imax512, IMin: imin512, IEq: ieq512, INe: ine512,
		ILt: ilt512, ILe: ile512, IGt: igt512, IGe: ige512, And: and512, Or: or512, Xor: xor512,
		Select:     choose512,
		opPair + 0: addAdd512, opPair + 1: addMul512, opPair + 2: addSub512, opPair + 3: addFrom512,
		opPair + 4: mulAdd512, opPair + 5: mulMul512, opPair + 6: mulSub512, opPair + 7: mulFrom512,
		opPair + 8: subAdd512, opPair + 9: subMul512, opPair + 10: subSub512, opPair + 11: subFrom512,
	},
	spread: spread512,
	rows: [lastOp + 1]func(dst, src *uint32, rows, groups int){
		Add: rowsSum512, Mul: rowsProduct512, Max: rowsMax512, Min: rowsMin512,
	},
	columns: [lastOp + 1]func(acc, src *uint32, rows, by, groups int){
		Add: columnsSum512, Mul: columnsProduct512, Max: columnsMax512, Min: columnsMin512,
	},
}

// lanes256 needs AVX2.
var lanes256 = &laneKernels{
	ops: [opPair + pairs]func(*laneWords){
		opCopy: copy256, Neg: neg256, Abs: abs256, Sqrt: sqrt256, Rsqrt: rsqrt256, Exp: exp256, Log: log256,
		Tanh: tanh256, Erf: erf256, Logistic: logistic256, Sign: sign256, Floor: floor256, Ceil: ceil256,
		Round: round256, IsFinite: finite256, IsNaN: nan256, INeg: ineg256, IAbs: iabs256, Not: not256,
		IntToFloat: tofloat256, FloatToInt: toint256, Add: add256, Sub: sub256, Mul: mul256, Div: div256,
		Max: max256, Min: min256, Eq: eq256, Ne: ne256, Lt: lt256, Le: le256, Gt: gt256, Ge: ge256,
		IAdd: iadd256, ISub: isub256, IMul: imul256, IMax: imax256, IMin: imin256, IEq: ieq256, INe: ine256,
		ILt: ilt256, ILe: ile256, IGt: igt256, IGe: ige256, And: and256, Or: or256, Xor: xor256,
		Select:     choose256,
		opPair + 0: addAdd256, opPair + 1: addMul256, opPair + 2: addSub256, opPair + 3: addFrom256,
		opPair + 4: mulAdd256, opPair + 5: mulMul256, opPair + 6: mulSub256, opPair + 7: mulFrom256,
		opPair + 8: subAdd256, opPair + 9: subMul256, opPair + 10: subSub256, opPair + 11: subFrom256,
	},
	spread: spread256,
	rows: [lastOp + 1]func(dst, src *uint32, rows, groups int){
		Add: rowsSum256, Mul: rowsProduct256, Max: rowsMax256, Min: rowsMin256,
	},
	columns: [lastOp + 1]func(acc, src *uint32, rows, by, groups int){
		Add: columnsSum256, Mul: columnsProduct256, Max: columnsMax256, Min: columnsMin256,
	},
}
