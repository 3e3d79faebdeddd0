package store

import "context"

// LookAtPostgres connects to the server that OpenPostgres would use, and makes the same checks of
// the server. It does not touch the store or its present user.
func LookAtPostgres(ctx context.Context, dsn string) error {
	p := &postgres{ctx: ctx}
	config, err := p.configure(dsn)
	if err != nil {
		return err
	}
	p.config = config.ConnConfig.Copy()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conn, err := p.connect(ctx)
	if err != nil {
		return wrap(err)
	}
	p.hangUp(conn)
	return nil
}
