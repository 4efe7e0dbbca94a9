// Package unattended has the system run 'starling join' for an owner: at each login by systemd, at each login by launchd,
// at each start by Windows. The settings are one file that 'join --config' reads, too, so that a fleet is configured
// by one file.
//
//	s, err := unattended.New(unattended.Config{Name: "starling", Folder: folder})
//	err = s.Install(settings, tokens)
package unattended

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/kardianos/service"

	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/durable"
)

// Config is a service's.
type Config struct {
	Name   string // of the service; a machine may have several
	Folder string // of its settings and tokens, which only the owner may read

	// Run takes part, with the settings' file and the arguments of join. It is for the process that the system starts.
	Run func(ctx context.Context, arguments []string) error
}

// Service is a service of this machine, installed or not.
type Service struct {
	Config
	system service.Service
	work   *work
}

// unit is systemd's of one user. Exit code 2 says that the settings are refused: starting again would not help.
const unit = `[Unit]
Description={{Description}}
ConditionFileIsExecutable={{Path | cmdEscape}}
StartLimitIntervalSec=0

[Service]
ExecStart={{Path | cmdEscape}}{{range Arguments}} {{. | cmd}}{{end}}
Restart=on-failure
RestartSec=300
RestartPreventExitStatus=2
Nice=10
IOSchedulingClass=idle
NoNewPrivileges=yes

[Install]
WantedBy=default.target
`

// New returns the service of a name.
func New(c Config) (*Service, error) {
	s := &Service{Config: c, work: &work{run: c.Run}}
	options := service.KeyValue{
		"UserService": true, "SystemdScript": unit, "RunAtLoad": true, "KeepAlive": false,
		"OnFailure": "restart", "OnFailureDelayDuration": "300s", "RunWait": s.work.wait,
	}
	var err error
	s.system, err = service.New(s.work, &service.Config{
		Name: c.Name, DisplayName: "Starling (" + c.Name + ")", Description: "Starling: federated fine-tuning; your data stays on this machine",
		Arguments: s.arguments(), Option: options,
	})
	if err == nil {
		err = serves(s.system.Platform())
	} else if errors.Is(err, service.ErrNoServiceSystemDetected) {
		err = serves("none")
	}
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	return s, nil
}

// serves refuses a manager of services, by the library's name for it, that runs none for one user.
func serves(manager string) error {
	switch manager {
	case "linux-systemd", "darwin-launchd", "windows-service":
		return nil
	}
	return usage.Errorf("it needs systemd, launchd or Windows' services, and this machine's manager is %s: have that run 'starling-edge join'", manager)
}

// arguments are what the system calls this program with.
func (s *Service) arguments() []string {
	return []string{"service", "run", "--name", s.Name, "--folder", s.Folder}
}

// Settings is the file of join's flags.
func (s *Service) Settings() string { return filepath.Join(s.Folder, "join.yaml") }

// Tokens is the file of join tokens, one a line.
func (s *Service) Tokens() string { return filepath.Join(s.Folder, "tokens") }

// Install writes settings and tokens, and has the system start the service now and later. What fails leaves nothing behind.
func (s *Service) Install(settings, tokens []byte) (err error) {
	if s.installed() {
		return usage.Errorf("the service %s is installed, with %s: remove it first, or choose another --name", s.Name, s.Settings())
	}
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(s.Folder)
		}
	}()
	for path, b := range map[string][]byte{s.Settings(): settings, s.Tokens(): tokens} {
		if err := durable.Replace(path, b, 0o600); err != nil {
			return fmt.Errorf("service: %w", err)
		}
	}
	if err := folderOfUnits(); err != nil {
		return err
	}
	if err := s.system.Install(); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	if err := s.system.Start(); err != nil {
		_ = s.system.Uninstall()
		return fmt.Errorf("service: it was not started, so it was removed again: %w", err)
	}
	return nil
}

// folderOfUnits makes the folder of a user's units, which a fresh account lacks.
func folderOfUnits() error {
	if runtime.GOOS != "linux" {
		return nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("service: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(home, ".config/systemd/user"), 0o755); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	return nil
}

// Remove stops the service and takes it from the system, with its settings and tokens. Identity and account stay.
func (s *Service) Remove() error {
	_ = s.Stop() // it may not run
	if err := s.act(s.system.Uninstall); err != nil {
		return err
	}
	if err := os.RemoveAll(s.Folder); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	return nil
}

// Start starts the service.
func (s *Service) Start() error { return s.act(s.system.Start) }

// Stop stops the service until the next login or start of the machine.
func (s *Service) Stop() error { return s.act(s.system.Stop) }

// act has the system act on an installed service.
func (s *Service) act(act func() error) error {
	if !s.installed() {
		return usage.Errorf("the service %s is not installed: there is no %s", s.Name, s.Settings())
	}
	if err := act(); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	return nil
}

func (s *Service) installed() bool {
	_, err := os.Stat(s.Settings())
	return err == nil
}

// The states of a service.
const (
	Running      = "running"
	Stopped      = "stopped"
	NotInstalled = "not installed"
)

// Status is the service's state, and where the system keeps what it says.
func (s *Service) Status() (state, log string) {
	log = map[string]string{
		"linux":   "journalctl --user -u " + s.Name,
		"darwin":  "~/Library/Logs, or log show --predicate 'process == \"starling-edge\"'",
		"windows": "the event viewer's application log",
	}[runtime.GOOS]
	if !s.installed() {
		return NotInstalled, log
	}
	switch status, err := s.system.Status(); {
	case status == service.StatusRunning:
		return Running, log
	case status == service.StatusStopped:
		return Stopped, log
	case err == nil || errors.Is(err, service.ErrNotInstalled):
		return NotInstalled, log
	default:
		return err.Error(), log
	}
}

// Run takes part for the system that started this process, until the job ends or the system stops the service.
func (s *Service) Run(ctx context.Context, arguments []string) error {
	s.work.begin(ctx, arguments)
	err := s.system.Run()
	return errors.Join(s.work.end(), err)
}
