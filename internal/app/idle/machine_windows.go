package idle

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"
)

var getSystemPowerStatus = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetSystemPowerStatus")

// onBattery asks for SYSTEM_POWER_STATUS, whose first byte is 0 on battery, 1 on mains and 255 if unknown.
func onBattery() (bool, error) {
	var status struct {
		line, battery, percent, saver byte
		left, full                    uint32
	}
	if ok, _, err := getSystemPowerStatus.Call(uintptr(unsafe.Pointer(&status))); ok == 0 {
		return false, err
	}
	return status.line == 0, nil
}

func onMetered() (bool, error) { return false, errors.New("it is not asked of Windows yet") }
